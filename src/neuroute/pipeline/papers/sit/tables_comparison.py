"""Tables 1, 2, 8 and 9 of paper `sit`: solvers and baselines by size, on TAM's test sets and on public benchmarks."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from neuroute.core.lazy import pd
from neuroute.datasets.benchmarks import study_instances
from neuroute.pipeline.papers.sit import paper as sit
from neuroute.pipeline.papers.sit.paper import PROBLEMS, run_id
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, artifact
from neuroute.pipeline.rendering.benchmark import Nodes, Solved, measured_here, not_measured, records_of
from neuroute.pipeline.rendering.cells import model_here, number, printed_numbers, solver_name, with_budget
from neuroute.pipeline.rendering.columns import HERE, WHOLE, described, short
from neuroute.pipeline.rendering.grid import (
    GAP,
    LENGTH,
    SECONDS_EACH,
    Grid,
    Method,
    comparison,
    from_print,
    grid_table,
    lkh_budgets,
    needs_of,
    of_each,
)
from neuroute.pipeline.rendering.notes import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, Value
from neuroute.specs.objects import Benchmark, Problem


def methods(scale: Scale, problem: Problem) -> list[Method]:
    """The rows of Table 1; besides, the model after the warm-up alone, and the control."""
    runs = {size: run_id(sit.model(scale, problem, size)) for size in sit.SIZES}
    here = sit.SOLVERS[problem] | sit.baselines(scale, problem) | sit.ours(scale, problem, runs)
    rows = from_print(sit.KEY, 1, here, problem=problem.upper())
    first = next(i for i, row in enumerate(rows) if row.label == "Ours greedy")
    besides = {"Ours, warm-up only, greedy": f"warm_{problem}"}
    if problem in scale[sit.SitScale].controls:
        besides["Ours, as long without re-construction, greedy"] = sit.control(problem)
    rows[first:first] = [Method(label, runs={1000: run_id(name)}) for label, name in besides.items()]
    return rows


def table1_grids(scale: Scale) -> list[Grid]:
    grids = []
    for problem in PROBLEMS:
        columns = comparison(
            {size: sit.reference(scale, problem, size) for size in sit.SIZES},
            f"{problem.upper()}{{}}".format,
            LENGTH,
            GAP,
            SECONDS_EACH,
            key=short,
            lengths=lambda size: 3 if size == 1000 else 2,
            gaps=2,
        )
        name = problem.upper()
        grids.append(Grid(methods(scale, problem), columns, head=(name,), where={"problem": name}))
    return grids


@artifact(
    "TSP and CVRP at five sizes: solvers, neural baselines, greedy and PRC", needs=sit.in_one_go(needs_of(table1_grids))
)
def table1(study: Study) -> Table:
    grids = table1_grids(study.scale)
    trained = [
        f"{name} on {problem.upper()}{study.runs[run].n}"
        for problem in PROBLEMS
        for name, run in sit.BASELINES[problem].items()
        if run in study.runs
    ]
    return grid_table(
        study,
        ("Problem", "Method"),
        grids,
        self_improvement=_self_improvement(study),
        models=sit.models_note(study, PROBLEMS),
        reference=sit.reference_note(study, PROBLEMS),
        lkh_budgets=lkh_budgets(study, grids),
        trained=", ".join(trained),
        scale=study.scale[sit.SitScale],
        difusco=sit.difusco_note(study),
        pomo=sit.pomo_note(study),
        elg=sit.elg_note(study),
        invit=sit.invit_note(study),
        glop=sit.glop_note(study, *PROBLEMS),
        htsp=sit.htsp_note(study),
    )


def _self_improvement(study: Study) -> list[str]:
    """What the rounds add to the warm-up, in greedy gaps at the smallest size."""
    parts = []
    for problem in PROBLEMS:
        dataset = sit.reference(study.scale, problem, 1000).dataset
        before, after = (study.gap(run_id(name), dataset) for name in (f"warm_{problem}", f"{problem}_1k"))
        if before is not None and after is not None:
            control = study.gap(run_id(sit.control(problem)), dataset)
            without = f" (trained as long on insertion's own: {control:.2f} %)" if control is not None else ""
            parts.append(f"from {before:.2f} to {after:.2f} % on {described(dataset)}{without}")
    if not parts:
        return []
    return [
        f"What self-improved training adds to the warm-up on insertion's solutions, in greedy gaps at 1K: "
        f"{'; '.join(parts)}. The paper prints no gaps after the warm-up alone."
    ]


def table8_grid(scale: Scale) -> Grid:
    columns = of_each(scale, "cvrp", sit.TAM_SIZES, sit.tam, LENGTH, SECONDS_EACH)
    return Grid(from_print(sit.KEY, 8, sit.SOLVERS["cvrp"] | sit.ours(scale, "cvrp", run_id("cvrp_1k"))), columns)


@artifact("TAM's test sets", needs=needs_of(table8_grid))
def table8(study: Study) -> Table:
    trained, c = study.runs[run_id("cvrp_1k")].n, study.scale[sit.SitScale].cvrp
    return grid_table(
        study,
        ("Method",),
        table8_grid(study.scale),
        trained=trained,
        solver=solver_name(c.tam_solver),
        without="" if "lkh3" in c.tam_other_solvers else "; LKH3 is not run",
        lkh_budgets=lkh_budgets(study, table8_grid(study.scale)),
    )


REFERENCE = Method(solvers=("concorde", "lkh", "lkh-long", "lkh3"))  # Table 9 has no row for another one


def table9_grids(scale: Scale) -> list[Grid]:
    grids = []
    for problem in PROBLEMS:
        tests = {size: sit.small(scale, problem, size) for size in sit.SMALL_SIZES}
        columns = comparison(tests, "n={}".format, time="Total time")
        name = problem.upper()
        # The rows of Table 9; besides, the greedy tours of the model
        models = sit.ours(scale, problem, run_id(f"{problem}_1k"))
        prc = replace(models["Ours PRC10"], label=with_budget("Ours PRC10", 10, scale[sit.SitScale].prc[10]))
        here = {"Concorde": REFERENCE, "HGS": sit.SOLVERS["cvrp"]["HGS"], "Ours PRC": prc} | sit.baselines(
            scale, problem
        )
        *rows, last = from_print(sit.KEY, 9, here, problem=problem.upper())
        small_methods = [*rows, replace(models["Ours greedy"], label="Ours greedy"), last]
        grids.append(Grid(small_methods, columns, head=(name,), where={"problem": name}))
    return grids


@artifact("Small instances", needs=needs_of(table9_grids))
def table9(study: Study) -> Table:
    names = {p: solver_name(sit.sizes(study.scale, p).small_reference) for p in PROBLEMS}
    return grid_table(
        study,
        ("Problem", "Method"),
        table9_grids(study.scale),
        solvers=names,
        prc_words=sit.prc_words(study, 10),
        pomo=sit.pomo_note(study),
        invit=sit.invit_note(study),
        glop=sit.glop_note(study, "tsp"),
        htsp=sit.htsp_note(study),
    )


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
        glop = sit.glop_on_benchmark(self.study.scale, self.problem).run
        rivals = {"GLOP": glop} if glop in self.study.runs else {}
        return {"Ours": run_id(f"{self.problem}_1k")} | sit.BASELINES[self.problem] | rivals

    @property
    def here(self) -> Nodes:
        least, below = sit.sizes(self.study.scale, self.problem).benchmark_nodes
        return least, below - 1

    @property
    def evaluations(self) -> list[str]:
        return [f"{run}/{self.name}" for run in self.runs.values()]

    @property
    def searches(self) -> list[str]:
        """The evaluations of searches that end at fewer nodes."""
        searched = [sit.search_on_benchmark(self.study.scale, self.problem, name).id for name in SEARCHED]
        invit = sit.on_library(self.study.scale, self.problem, sit.INVIT[self.problem])
        return [*searched, sit.elg_on_benchmark(self.study.scale, self.problem).id, invit.id]

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
        how = method.run(None), method.decoding.name, nodes
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
        how = method.run(None), method.decoding.name
        gaps = [self._gap(method, nodes, number(rows, name, "gap_pct")) for name, nodes, _ in self.groups()]
        solved = len(self.solved_by_any.values("gap_pct", *how, GROUPS[self.problem]["all"]))
        return [*gaps, Cell(solved or None, number(rows, "all", "solved"))]

    def methods(self) -> list[Method]:
        scale, glop = self.study.scale, sit.glop_on_benchmark(self.study.scale, self.problem)
        greedy = self.runs | {"INViT": sit.INVIT[self.problem]}
        here = {
            **{f"{name} greedy": Method(runs=run) for name, run in greedy.items()},
            **sit.ours(scale, self.problem, self.runs["Ours"]),
            "GLOP": Method(runs=self.runs.get("GLOP", {}), decoding=glop.decodings[0]),
            "ELG aug×8": Method(runs=sit.ELG[self.problem], decoding=sit.AUGMENTED),
            **{
                label: Method(runs=self.runs[name], decoding=sit.search_of(scale, name))
                for label, name in sit.SEARCHES.items()
            },
        }
        return from_print(sit.KEY, 2, here, problem=self.problem.upper())


def _table2_needs(scale: Scale) -> Iterator[Need]:
    for problem in PROBLEMS:
        for run in (run_id(f"{problem}_1k"), *sit.BASELINES[problem].values()):
            yield sit.on_library(scale, problem, run)
        for name in SEARCHED:
            yield sit.search_on_benchmark(scale, problem, name)
        yield sit.glop_on_benchmark(scale, problem)
        yield sit.elg_on_benchmark(scale, problem)
        yield sit.on_library(scale, problem, sit.INVIT[problem])


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
    s = study.scale[sit.SitScale]
    limits = "; ".join(
        f"of {b.name.upper()} {measured_here(study, b.here[0], b.here[1] + 1, b.name)}" for b in benchmarks
    )
    lacking = []
    for b in benchmarks:
        runs = {f"{name} ({b.problem.upper()})": run for name, run in b.runs.items()}
        lacking += not_measured(study, b.solved.records, b.here[1] + 1, runs, b.name, b.here[0])
    trained = [f"{p.upper()}{study.runs[run_id(f'{p}_1k')].n}" for p in PROBLEMS if run_id(f"{p}_1k") in study.runs]
    return notes(
        study, limits=limits, scale=s, elg_nodes=sit.ELG_NODES, not_measured=lacking, trained=" and ".join(trained)
    )
