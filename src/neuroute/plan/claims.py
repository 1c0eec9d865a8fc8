"""What a paper claims: each sentence is declared beside the function that measures it here.

    @claim("Deeper is better than wider", where="abstract; Figure 2", artifact="figure2")
    def deeper(study: Study) -> Finding: ...

`claims.py` in a paper's folder holds them, and as `FIGURES` the names of the paper's main figures.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and how it is looked at here."""

    sentence: str
    where: str  # in the paper
    artifact: str  # whose measurements it reads: figure2
    function: str  # package.module:function, of that artifact's Study


def claim(sentence: str, *, where: str, artifact: str) -> Callable[[F], F]:
    """Declare the decorated function, which compares what was measured as the sentence does."""

    def declare(function: F) -> F:
        dotted = f"{function.__module__}:{function.__name__}"
        function.__dict__["claim"] = Claim(sentence, where, artifact, dotted)
        return function

    return declare


def claims_in(module: Any) -> list[Claim]:
    """Those that a module declares, in its order."""
    functions = [value for value in vars(module).values() if isinstance(value, FunctionType)]
    return [f.__dict__["claim"] for f in functions if "claim" in vars(f) and f.__module__ == module.__name__]
