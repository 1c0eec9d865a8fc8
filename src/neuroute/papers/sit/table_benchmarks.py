"""Table 2 of paper `sit`: the large instances of TSPLIB and CVRPLIB."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from neuroute.core.lazy import pd
from neuroute.datasets.benchmarks import study_instances
from neuroute.papers.sit import roles
from neuroute.papers.sit.baselines import SEARCHES, ours
from neuroute.papers.sit.roles import BASELINES, PROBLEMS, run_id
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.config import Scale
from neuroute.plan.decoding_names import name_of
from neuroute.plan.needs import Need, artifact
from neuroute.plan.objects import Benchmark, Problem
from neuroute.rendering.benchmark import Nodes, Solved, measured_here, not_measured, records_of
from neuroute.rendering.cells import model_here, number, printed_numbers
from neuroute.rendering.columns import HERE, WHOLE
from neuroute.rendering.grid import Method, from_print
from neuroute.rendering.notes import notes
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table, Value

SEARCHED = ("BQ", "LEHD")  # with beams; by random re-construct
BENCHMARKS: dict[Problem, Benchmark] = {"tsp": "tsplib", "cvrp": "cvrplib"}
# The paper's groups by their printed names, as nodes (with the depot) from and to, both counted in.  Its n > 1K of
# TSPLIB takes in dsj1000, which has exactly 1,000 nodes: 33 instances only with it; CVRPLIB's n are customers.
GROUPS: dict[Problem, dict[str, Nodes]] = {
    "tsp": {"1K<n<=5K": (1000, 5000), "n>5K": (5001, 10**9), "all": (1000, 10**9)},
    "cvrp": {"1K<n<=7K": (1001, 7001), "n>7K": (7002, 10**9), "all": (1001, 10**9)},
}
HEADS = {"1K<n<=5K": "1K < n ≤ 5K", "n>5K": "n > 5K", "1K<n<=7K": "1K < n ≤ 7K", "n>7K": "n > 7K", "all": "All"}
KEYS = {"1K<n<=5K": "to_5k", "n>5K": "above_5k", "1K<n<=7K": "to_7k", "n>7K": "above_7k", "all": "all"}


@dataclass(frozen=True)
class _Benchmark:
    """One of the two benchmarks, as far as this scale measures it."""

    study: Study
    problem: Problem

    @property
    def name(self) -> Benchmark:
        return BENCHMARKS[self.problem]

    @cached_property
    def runs(self) -> dict[str, str]:
        """Printed name -> the model that is measured here."""
        glop = roles.glop_on_benchmark(self.study.scale, self.problem).run
        rivals = {"GLOP": glop} if glop in self.study.runs else {}
        return {"Ours": run_id(f"{self.problem}_1k")} | BASELINES[self.problem] | rivals

    @property
    def here(self) -> Nodes:
        least, below = roles.sizes(self.study.scale, self.problem).benchmark_nodes
        return least, below - 1

    @property
    def evaluations(self) -> list[str]:
        return [f"{run}/{roles.group(run, self.name)}" for run in self.runs.values()]

    @property
    def searches(self) -> list[str]:
        """The evaluations of searches that end at fewer nodes."""
        searched = [roles.search_on_benchmark(self.study.scale, self.problem, name).id for name in SEARCHED]
        invit = roles.on_benchmark(self.study.scale, self.problem, roles.INVIT[self.problem])
        return [*searched, roles.elg_on_benchmark(self.study.scale, self.problem).id, invit.id]

    @cached_property
    def solved(self) -> Solved:
        """Instances that every model has solved greedily, and whatever was measured of them."""
        common = Solved.by_all(self.study, self.evaluations, self.name)
        searched = records_of(self.study, self.searches, self.name)
        searched = searched[searched.test.isin(common.records.test)]
        self.study.mark(searched)
        return Solved(self.name, pd.concat([common.records, searched]))

    @cached_property
    def solved_by_any(self) -> Solved:
        return Solved(self.name, records_of(self.study, [*self.evaluations, *self.searches], self.name))

    def _gap(self, method: Method, nodes: Nodes, published: Value) -> Cell:
        """Mean gap over the common instances of a group; nothing of a search that was not run on all of them."""
        how = method.run(None), name_of(method.decoding), nodes
        if len(self.solved.values("gap_pct", *how)) < self.solved.count(nodes):
            return Cell(None, published)
        return self.solved.gap_cell(self.study, *how, published)

    def groups(self) -> list[tuple[str, Nodes, Column]]:
        """List the printed name, the nodes and the column of each group; "" for what the paper does not measure."""
        rows = [(name, nodes, KEYS[name], HEADS[name]) for name, nodes in GROUPS[self.problem].items()]
        if self.here[0] < GROUPS[self.problem]["all"][0]:
            rows.insert(0, ("", self.here, "here", f"Here: {self.here[0]:,} ≤ n < {self.here[1] + 1:,}"))
        group = self.name.upper()
        return [
            (name, nodes, Column(f"gap_{self.name}_{key}_pct", head, "%", group=group, at=self.solved.describe(nodes)))
            for name, nodes, key, head in rows
        ]

    def columns(self) -> list[Column]:
        large = len(study_instances(10**9, GROUPS[self.problem]["all"][0], self.name))
        gaps = [column for *_, column in self.groups()]
        return [*gaps, Column(f"solved_{self.name}", "Solved", f"of {large}", WHOLE, self.name.upper())]

    def cells(self, method: Method) -> list[Cell]:
        """Show mean gaps by group, and how many of the paper's instances the method alone has solved."""
        rows = printed_numbers(self.study, 2, problem=self.problem.upper(), **(method.printed or {}))
        how = method.run(None), name_of(method.decoding)
        gaps = [self._gap(method, nodes, number(rows, name, "gap_pct")) for name, nodes, _ in self.groups()]
        solved = len(self.solved_by_any.values("gap_pct", *how, GROUPS[self.problem]["all"]))
        return [*gaps, Cell(solved or None, number(rows, "all", "solved"))]

    def methods(self) -> list[Method]:
        scale, glop = self.study.scale, roles.glop_on_benchmark(self.study.scale, self.problem)
        greedy = self.runs | {"INViT": roles.INVIT[self.problem]}
        here = {
            **{f"{name} greedy": Method(runs=run) for name, run in greedy.items()},
            **ours(scale, self.problem, self.runs["Ours"]),
            "GLOP": Method(runs=self.runs.get("GLOP", {}), decoding=glop.decodings[0]),
            "ELG aug×8": Method(runs=roles.ELG[self.problem], decoding=roles.AUGMENTED),
            **{
                label: Method(runs=self.runs[name], decoding=roles.search_of(scale, name))
                for label, name in SEARCHES.items()
            },
        }
        return from_print(roles.PAPER, 2, here, problem=self.problem.upper())


def _table2_needs(scale: Scale) -> Iterator[Need]:
    for problem in PROBLEMS:
        for run in (run_id(f"{problem}_1k"), *BASELINES[problem].values()):
            yield roles.on_benchmark(scale, problem, run)
        for name in SEARCHED:
            yield roles.search_on_benchmark(scale, problem, name)
        yield roles.glop_on_benchmark(scale, problem)
        yield roles.elg_on_benchmark(scale, problem)
        yield roles.on_benchmark(scale, problem, roles.INVIT[problem])


@artifact("Large instances of TSPLIB and CVRPLIB", needs=_table2_needs)
def table2(study: Study) -> Table:
    """Mean gaps by size of the instances, and how many were solved."""
    benchmarks = [_Benchmark(study, problem) for problem in PROBLEMS]
    columns = [column for b in benchmarks for column in b.columns()]
    rows = []
    for methods in zip(*(b.methods() for b in benchmarks), strict=True):
        here = model_here(study, *(method.run(None) for method in methods))
        cells = [cell for b, method in zip(benchmarks, methods, strict=True) for cell in b.cells(method)]
        rows.append(Row((*methods[0].labels, here), tuple(cells)))
    return Table(study.artifact.title, ("Method", HERE), tuple(columns), tuple(rows), _notes(study, benchmarks))


def _notes(study: Study, benchmarks: list[_Benchmark]) -> tuple[str, ...]:
    s = study.scale[SitScale]
    limits = "; ".join(
        f"of {b.name.upper()} {measured_here(study, b.here[0], b.here[1] + 1, b.name)}" for b in benchmarks
    )
    lacking = []
    for b in benchmarks:
        runs = {f"{name} ({b.problem.upper()})": run for name, run in b.runs.items()}
        lacking += not_measured(study, b.solved.records, b.here[1] + 1, runs, b.name, b.here[0])
    trained = [f"{p.upper()}{study.runs[run_id(f'{p}_1k')].n}" for p in PROBLEMS if run_id(f"{p}_1k") in study.runs]
    return notes(
        study,
        limits=limits,
        scale=s,
        elg_nodes=roles.ELG_NODES,
        not_measured=lacking,
        trained=" and ".join(trained),
    )
