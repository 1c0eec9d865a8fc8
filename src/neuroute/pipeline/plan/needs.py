"""What artifacts need, said once, beside the function that draws each: measurements, logs, labels.

    def table3_needs(scale: Scale) -> Iterator[Need]:
        yield from tested("toy/net", toy_test_set(scale))

    @artifact("Gaps of the toy network", needs=table3_needs)
    def table3(study: Study) -> Table: ...

The plan collects what is to be measured from these.  It imports the modules of all tables and figures, so they import
pandas, matplotlib and torch only when they draw.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from neuroute.specs.data import Labels
from neuroute.specs.decodings import Decoding
from neuroute.specs.evaluations import Measurement, Test

if TYPE_CHECKING:
    from neuroute.pipeline.plan.scale import Scale


@dataclass(frozen=True)
class Log:
    """The training log of a run, and what training left in run.json.

    Attributes:
        run: its id.
        all_seeds: of all its trainings, not of the first alone.
    """

    run: str
    all_seeds: bool = False


@dataclass(frozen=True)
class Solved:
    """How long a solver took for a labelled test set, and how good it was.

    Attributes:
        labels: the test set, and the solver.
        optional: only where the plan runs it anyway.
    """

    labels: Labels
    optional: bool = False


Need = Measurement | Log | Solved
F = TypeVar("F", bound=Callable[..., Any])


def nothing(scale: "Scale") -> Iterable[Need]:
    """Return no needs: of what shows printed numbers and settings alone."""
    return ()


def tested(run: str | Iterable[str], labels: Labels | Iterable[Labels], *decodings: Decoding) -> Iterator[Test]:
    """Yield the tests of a run, or of several, on a labelled test set, or on each of several.

    Args:
        run: its id, or theirs.
        labels: the test set, with the solver that gaps are against.
        decodings: in which ways; none: greedily.
    """
    runs = [run] if isinstance(run, str) else run
    for each, test, how in product(runs, [labels] if isinstance(labels, Labels) else labels, decodings or [Decoding()]):
        yield Test(run=each, labels=test, decoding=how)


def by_solvers(labels: Labels, solvers: Iterable[str]) -> tuple[Labels, ...]:
    """Return the same instances as each of these solvers solves them, each once."""
    return tuple(labels.model_copy(update={"solver": solver}) for solver in dict.fromkeys(solvers))


@dataclass(frozen=True)
class Declaration:
    """A table or figure as the plan knows it before it is drawn.

    Attributes:
        name: of the function: `table3`, `figure1`.
        title: of the artifact.
        function: what draws it, `package.module:function`.
        needs: scale -> what it shows.
        printed_files: files of printed numbers that it shows, without .csv.
    """

    name: str
    title: str
    function: str
    needs: "Callable[[Scale], Iterable[Need]]"
    printed_files: tuple[str, ...]

    @property
    def place(self) -> tuple[bool, str, int]:
        """Tables come before figures, each in the order of their numbers."""
        stem, number = re.fullmatch(r"(\w*?)(\d*)", self.name).groups()  # type: ignore[union-attr]
        return not stem.startswith("table"), stem, int(number or 0)


def artifact(
    title: str, needs: "Callable[[Scale], Iterable[Need]]" = nothing, printed_files: tuple[str, ...] | None = None
) -> Callable[[F], F]:
    """Declare the decorated function, which draws a table or figure of its name.

    Args:
        title: of the artifact.
        needs: what it shows; at a scale of which it yields nothing there is no such artifact.
        printed_files: which of the paper's files of printed numbers it shows, if not the one of its own name; a change
            of others does not draw it anew.
    """

    def declare(function: F) -> F:
        dotted = f"{function.__module__}:{function.__name__}"
        function.__dict__["declaration"] = Declaration(
            function.__name__, title, dotted, needs, (function.__name__,) if printed_files is None else printed_files
        )
        return function

    return declare


def declarations_in(module: Any) -> list[Declaration]:
    """List the artifacts that a module's own functions declare."""
    functions = [value for value in vars(module).values() if isinstance(value, FunctionType)]
    return [
        f.__dict__["declaration"] for f in functions if "declaration" in vars(f) and f.__module__ == module.__name__
    ]


TOGETHER = "all"  # the group of all that a paper measures of a model, where one job does that


def group_of(paper: str, run: str, name: str = "") -> str:
    """Name a group of evaluations: of a run of another paper with this one's name.

    Args:
        paper: which measures.
        run: the id of what is measured.
        name: of the group; default: the run's tests.
    """
    if run.startswith(f"{paper}/"):
        return name or paper
    return f"tests_{paper}" if name in ("", paper) else f"{name}_{paper}"
