"""What is raised when something that the user gave is wrong."""


class InputError(ValueError):
    """A file, a line, an allele or a setting is not what it must be.

    The message is one line: where, what was expected, what to do.
    """
