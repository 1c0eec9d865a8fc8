"""The one exception that users are meant to see: what is wrong, where, and how to mend it, on one line."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any

from neuroute.core.text import printable

LONGEST = 2000  # characters of a message
LEAST = 0.6  # likeness of a name that may be meant


class NeurouteError(Exception):
    """Bad input or a missing piece that the user can mend.  The CLI prints it as one line, without a traceback.

    What it quotes may be anyone's: as text it has no control characters (such as a terminal's escape sequences), and of
    a long message the middle is left out.
    """

    def __str__(self) -> str:
        text = super().__str__()
        if len(text) > LONGEST:
            text = f"{text[: LONGEST // 2]} [...] {text[-LONGEST // 2 :]}"
        return printable(text)


class Temporary(NeurouteError):
    """What another attempt may do, with more memory or on another node; all other errors are the same each time."""


def may_pass(error: BaseException) -> bool:
    """Whether another attempt may do what ended in this error: for want of memory, disk or network."""
    lacks_memory = isinstance(error, MemoryError) or "out of memory" in str(error).lower()
    return lacks_memory or isinstance(error, Temporary | OSError | KeyboardInterrupt)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a search; `best` is the best that there was (of `neuroute.solve` a `Solution`), or None."""

    def __init__(self, best: Any = None) -> None:
        super().__init__()
        self.best = best


def near(name: str, names: Iterable[str], most: int = 3) -> list[str]:
    """The names that this one may be a slip for, nearest first; of two as near, the one that begins alike.

    It may also be cut short (`scaling/bse` for scaling/base_6x128), or initials (`lr` for learning_rate).
    """

    def whole(other: str) -> float:
        is_initials = len(name) > 1 and "".join(word[:1] for word in other.split("_")) == name
        return 1.0 if is_initials else SequenceMatcher(None, other, name).ratio()

    def rank(other: str) -> tuple[float, int]:
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(other, name, strict=False))
        return round(likenesses[other], 2), len(list(alike))

    every = {other: whole(other) for other in names}
    cuts = {other: SequenceMatcher(None, other[: len(name) + 1], name).ratio() for other in every}
    best = max([LEAST, *every.values()])
    every |= {other: cut for other, cut in cuts.items() if cut > best}
    likenesses = {other: likeness for other, likeness in every.items() if likeness >= LEAST}
    matches = sorted(likenesses, key=rank, reverse=True)
    return [other for other in matches if rank(other)[0] > rank(matches[0])[0] - 0.1][:most]


def did_you_mean(names: Iterable[str]) -> str:
    """`; did you mean a or b?`, and nothing where there is no name."""
    listed = " or ".join(dict.fromkeys(names))
    return f"; did you mean {listed}?" if listed else ""
