"""What each problem brings to the stages that all problems share: its parts, by dotted name.

The names keep the problems apart: an edit of one problem's code, or a new problem, reruns nothing of another's.  So the
code digest of a stage takes the `entries` of the problems at hand besides its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from neuroute.core.dotted import packages, resolve
from neuroute.core.errors import NeurouteError

T = TypeVar("T")

PARTS: dict[str, dict[str, str]] = {
    "tsp": {
        "spec": "neuroute.datasets.problem_specs:TSP",
        "environment": "neuroute.decoding.tsp:TSP",
        "search": "neuroute.decoding.tsp:SEARCH",
        "revise": "neuroute.decoding.revision:revise_batch",
        "decision": "neuroute.training.supervised:PathDecision",
        "supervised": "neuroute.training.supervised:supervised",
        "path-tsp": "neuroute.training.supervised:PathTspBatches",
        "self-improvement": "neuroute.training.self_improvement:SelfImprovementBatches",
        "reconstruction": "neuroute.training.self_improvement:TourRounds",
        "reinforce": "neuroute.training.reinforce:reinforce",
    },
    "cvrp": {
        "spec": "neuroute.datasets.problem_specs:CVRP",
        "environment": "neuroute.decoding.cvrp:CVRP",
        "search": "neuroute.decoding.cvrp_search:SEARCH",
        "decision": "neuroute.training.cvrp:CvrpDecision",
        "supervised": "neuroute.training.cvrp:supervised",
        "self-improvement": "neuroute.training.cvrp:RouteSamples",
        "reconstruction": "neuroute.training.cvrp:RouteRounds",
        "reinforce": "neuroute.training.reinforce:reinforce",
    },
    "vrp": {
        "spec": "neuroute.datasets.problem_specs:VRP",
        "environment": "neuroute.decoding.vrp:VRP",
        "search": "neuroute.decoding.vrp:SEARCH",
        "reinforce": "neuroute.training.reinforce_vrp:reinforce",
    },
}


@dataclass(frozen=True)
class Part(Generic[T]):
    """One column of the table: a value of type T for each problem that has it."""

    name: str

    def of(self, problem: str) -> T:
        """Load the part of a problem.  Raises NeurouteError if there is no such problem, or it lacks the part."""
        return cast(T, resolve(_entry(problem, self.name)))


def entries(problems: Iterable[str], *names: str) -> list[str]:
    """List dotted names for `code_digest`."""
    return [_entry(problem, name) for problem in sorted(set(problems)) for name in names]


def _entry(problem: str, name: str) -> str:
    if ":" in name:  # brought by a system: it serves all problems that the system does
        system, _, function = name.partition(":")
        return f"{packages()[system]}.decoding:{function}" if system in packages() else name
    # The table too is addressed by name: else every digest would hang on all of it.
    parts = cast(Mapping[str, Mapping[str, str]], cast(Any, resolve(f"{__name__}:PARTS")))
    if problem not in parts:
        raise NeurouteError(f"no problem '{problem}'; there are: {', '.join(parts)}")
    if name not in parts[problem]:
        raise NeurouteError(f"problem '{problem}' has no '{name}' yet; it has {', '.join(parts[problem])}")
    return parts[problem][name]
