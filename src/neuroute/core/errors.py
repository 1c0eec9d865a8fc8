"""The one exception that users are meant to see: what is wrong, where, and how to mend it, on one line."""


class NeurouteError(Exception):
    """Bad input or a missing piece that the user can mend.  The CLI prints it as one line, without a traceback."""
