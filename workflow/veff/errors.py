"""What is raised when something that the user gave is wrong."""


class InputError(ValueError):
    """A file, a line, an allele or a setting is not what it must be.

    The message is one line: where, what was expected, what to do.
    """


class Passing(InputError):
    """Not what the user gave is at fault, but the network or the machine: it may go well later."""
