"""The tables and files that a run leaves."""
