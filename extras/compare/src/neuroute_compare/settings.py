"""Settings of a comparison: the block `compare` of config.yaml."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from neuroute.core.errors import NeurouteError
from neuroute.specs.data import Spec

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def split_method(text: str) -> tuple[str, str, str]:
    """Return the name, source and problem of `name=source@problem`; what is not said is empty.

    In `module:Net=FILE`, in a path and of a file with an equals sign there is no name.  Raises NeurouteError if the
    name or what it names is empty.
    """
    whole, _, problem = text.partition("@")
    name, equals, source = whole.partition("=")
    if not equals or ":" in name or "/" in name or Path(whole).is_file():
        return "", whole, problem
    if not (name.strip() and source):
        raise NeurouteError(f"method '{text}': a name goes before the equals sign, and a method behind it")
    return name.strip(), source, problem


class Compare(Spec):
    """What `snakemake compare` and `neuroute compare` compare, and on what."""

    sets: Annotated[
        list[str], Field(min_length=1, description="tsplib, x, ags, national, vlsi, dimacs, or files of your own")
    ] = ["tsplib", "x"]
    ignore_sections: Annotated[
        list[str], Field(description="keys and sections of files of your own that are left out, as PICKUP_SECTION")
    ] = []
    methods: Annotated[
        list[str],
        Field(
            min_length=1,
            description="solvers, shipped networks, checkpoints, runs of the plan, a paper's runs, `trained` (all "
            "finished ones), module:function, module:Net=FILE; each under a name of its own: name=...",
        ),
    ] = [
        "nearest",
        "insertion@tsp",
        "insertion-angle@cvrp",
        "savings",
        "lkh",
        "ortools",
        "pyvrp@cvrp",
        "hgs@cvrp",
        "tsp",
        "cvrp",
        "vrp",
    ]
    results: Annotated[list[str], Field(description="results files of others: method, instance, cost, seconds")] = []
    published: Annotated[
        list[str], Field(description="methods of a survey whose results join in: `all`, or as in [lehd, icam, sil]")
    ] = []
    against: Annotated[
        str | None, Field(description="the method to which paired differences are; null: the best cheap construction")
    ] = None
    seconds: Annotated[
        Seconds | Annotated[list[Seconds], Field(min_length=1)] | None,
        Field(description="that each search has for an instance; of several, each search is a row at each; null: 5"),
    ] = None
    limit: Annotated[
        float,
        Field(gt=0, allow_inf_nan=False, description="wall-clock seconds after which an instance counts as unsolved"),
    ] = 600.0
    min_nodes: Annotated[int, Field(ge=0, description="nodes (TSP) or customers (CVRP) of the smallest instance")] = 0
    max_nodes: Annotated[int, Field(ge=4, description="nodes or customers of the largest instance")] = 200
    groups: Annotated[list[int], Field(description="sizes at which groups begin")] = [100, 200, 500, 1000, 10000]
    seeds: Annotated[int, Field(ge=1, description="of methods that draw")] = 1
    threads: Annotated[int, Field(ge=1, description="of networks on a CPU; solvers have one")] = 1
    clock: Annotated[
        Literal["wall", "cpu"], Field(description="by which searches end; cpu: where a machine does other work, too")
    ] = "wall"

    @property
    def budgets(self) -> list[float]:
        """The seconds of searches, shortest first."""
        if self.seconds is None:
            return [5.0]
        return sorted(set(self.seconds)) if isinstance(self.seconds, list) else [self.seconds]

    @property
    def sources(self) -> list[str]:
        """The methods without their names and problems."""
        return [split_method(method)[1] for method in self.methods]

    @property
    def benchmarks(self) -> list[str]:
        """The benchmarks that are downloaded for it."""
        from neuroute.api.reference import LIBRARIES  # here, as plans need neither numpy nor what reads instances

        return sorted({LIBRARIES[name][0] for name in self.sets if name in LIBRARIES})
