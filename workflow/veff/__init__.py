"""Variant effects from Cherimoya models: the library behind the workflow, a module a question."""

__version__ = "0.1.0"
