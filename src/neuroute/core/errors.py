"""The one exception that users are meant to see: what is wrong, where, and how to mend it, on one line."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class NeurouteError(Exception):
    """Bad input or a missing piece that the user can mend.  The CLI prints it as one line, without a traceback."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a search; `best` is the best that there was (of `neuroute.solve` a `Solution`), or None."""

    def __init__(self, best: Any = None) -> None:
        super().__init__()
        self.best = best


def near(name: str, names: Iterable[str], most: int = 3) -> list[str]:
    """The names that this one may be a slip for, nearest first."""
    return get_close_matches(name, list(names), n=most)


def did_you_mean(names: Iterable[str]) -> str:
    """`; did you mean a or b?`, and nothing where there is no name."""
    listed = " or ".join(dict.fromkeys(names))
    return f"; did you mean {listed}?" if listed else ""
