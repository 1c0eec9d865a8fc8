"""Tables 3, 4 and 10 of paper `sit`: what SIT and cross-attention bring, to BQ too, in gaps, time and memory.

Time and memory are of greedy decoding, by networks with random weights.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from neuroute.pipeline.papers.sit import roles
from neuroute.pipeline.papers.sit.baselines import reference_note
from neuroute.pipeline.papers.sit.roles import ABLATED, BASELINES, BQ_SIZES, NO_SIT, SELF, SIZES, run_id
from neuroute.pipeline.papers.sit.scale import SitScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, artifact, tested
from neuroute.pipeline.rendering.cells import gap_cell, model_here, number, printed_numbers
from neuroute.pipeline.rendering.columns import HERE, described, short
from neuroute.pipeline.rendering.notes import draw_table
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, Value, duration, fixed
from neuroute.specs.objects import Dataset, Problem, Reconstruction

HELD = "-math"  # attention that holds its scores
METRICS = {"time_s": "time_s", "peak_memory_mb": "memory_mb"}  # as recorded -> as printed


@dataclass(frozen=True)
class Model:
    """A row: the network that is timed, and the models whose gaps are shown."""

    label: str
    network: str
    runs: Mapping[int, str] = field(default_factory=dict)  # the paper's size -> the model
    printed: bool = True  # whether the paper has the row; else it shows time and memory alone


@dataclass(frozen=True)
class Comparison:
    """The models of a table on one problem, at some of the paper's sizes."""

    study: Study
    problem: Problem
    sizes: Sequence[int]
    models: Sequence[Model]

    def table(self, labels: Sequence[str], gaps: bool = True, **values: object) -> Table:
        """Draw it; labels: of the models whose exponents are said; values: of its notes."""
        columns = [column for size in self.sizes for column in self._columns(size, gaps)]
        rows = [self._row(model, gaps) for model in self.models]
        values |= {"exponents": self.exponents_note(labels), **self.timed()}
        return draw_table(self.study, ("Model", HERE) if gaps else ("Method",), columns, rows, **values)

    def _columns(self, size: int, gaps: bool) -> list[Column]:
        name, problem = short(size), self.problem.upper()
        dataset, timed = roles.reference(self.study.scale, self.problem, size).dataset, self._timed(size)
        paper = f"{problem}{size}"
        columns = [
            Column(f"gap_{name}_pct", "Gap", "%", fixed(2), f"{problem}{dataset.n}", described(dataset), paper),
            Column(f"time_{name}_s", "Time", "", duration, f"{problem}{timed.n}", self._at(size), paper),
            Column(f"memory_{name}_mb", "Memory", "MB", fixed(2), f"{problem}{timed.n}", self._at(size), paper),
        ]
        return columns if gaps else columns[1:]

    def _row(self, model: Model, gaps: bool) -> Row:
        cells: list[Cell] = []
        for size in self.sizes:
            cells += [self._gap(model, size)] if gaps else []
            cells += [
                Cell(self._value_here(model, size, metric), self._published(model, size, name), at=self._at(size))
                for metric, name in METRICS.items()
            ]
        here = (model_here(self.study, next(iter(model.runs.values()), None)),) if gaps else ()
        return Row((model.label, *here), tuple(cells))

    def _gap(self, model: Model, size: int) -> Cell:
        published, run = self._published(model, size, "gap_pct"), model.runs.get(size)
        if run is None or not model.printed:
            return Cell(None, published)
        return gap_cell(self.study, run, roles.reference(self.study.scale, self.problem, size).dataset, published)

    def _published(self, model: Model, size: int, metric: str) -> Value:
        if not model.printed:
            return None
        return number(printed_numbers(self.study, self.study.artifact.name, method=model.label), size, metric)

    def _timed(self, size: int) -> Dataset:
        return roles.efficiency(self.study.scale, self.problem, size)

    def _at(self, size: int) -> str:
        return f"{self.problem.upper()}{self._timed(size).n}, one instance"

    def _value_here(self, model: Model, size: int, metric: str) -> Value:
        """Seconds or MiB of one instance; "OOM" where it does not fit."""
        cell = run_id(f"{self.problem}_1k"), self._timed(size), f"efficiency-{model.network}"
        if self.study.value("out_of_memory", *cell):
            return "OOM"
        share = self.study.value("share_at_once", *cell)
        if share is not None and metric == "peak_memory_mb":  # the memory there is, not what all at once would take
            return f"in {math.ceil(1 / share)} parts"
        return self.study.value(metric, *cell)

    def exponents_note(self, labels: Sequence[str]) -> list[str]:
        """Say how time and memory of these models grow with n."""
        models = {model.label: model for model in self.models}
        nodes, parts = [self._timed(size).n for size in self.sizes], []
        for model in (models[label] for label in labels):
            fits = []
            for metric, name in METRICS.items():
                here = exponent(nodes, [self._value_here(model, size, metric) for size in self.sizes])
                paper = exponent(self.sizes, [self._published(model, size, name) for size in self.sizes])
                if here is not None:
                    in_print = f" ({paper:.2f})" if paper is not None else ""
                    fits.append(f"{name.partition('_')[0]} {here:.2f}{in_print}")
            parts += [f"{model.label}: {', '.join(fits)}"] if fits else []
        if not parts:
            return []
        return [
            "Exponents of n, by least squares on the log-log scale over the sizes measured, the printed numbers' in "
            f"parentheses: {'; '.join(parts)}. With n decisions, time that is linear in n at each decision has "
            "exponent 2."
        ]

    def timed(self) -> dict[str, object]:
        """What the notes say of how time and memory were measured, and of which networks."""
        s = self.study.scale[SitScale]
        names = ("sit", "lehd", "sigd", "pomo") if self.problem == "tsp" else ("sit", "bq")
        shapes = {name.upper(): shape for name, shape in s.efficiency_shapes.items() if name in names}
        text = ", ".join(f"{name} D={shape.depth}, W={shape.width}" for name, shape in shapes.items())
        nodes = ", ".join(f"{self._timed(size).n:,}" for size in self.sizes)
        return {"problem": self.problem.upper(), "nodes": nodes, "shapes": text, "decisions": s.efficiency_decisions}


def exponent(sizes: Sequence[float], values: Sequence[Value]) -> float | None:
    """Fit b of values ~ n^b by least squares on the log-log scale, over the numbers; None with fewer than two."""
    points = [(n, v) for n, v in zip(sizes, values, strict=True) if isinstance(v, int | float) and v > 0]
    if len({n for n, _ in points}) < 2:
        return None
    from neuroute.analysis.power_laws import fit

    return -fit([n for n, _ in points], [v for _, v in points], "log-log").alpha


def _table3_needs(scale: Scale) -> Iterator[Need]:
    tests = [roles.reference(scale, "cvrp", size) for size in ABLATED]
    yield from tested(map(run_id, ("cvrp_1k", NO_SIT, SELF)), tests)
    yield roles.efficiency_of(scale, "cvrp")


@artifact("Without self-improved training, without cross-attention", needs=_table3_needs)
def table3(study: Study) -> Table:
    """Gap, time and memory of our model, of it trained on labels, and of its self-attention twin."""
    labels = ("Ours", "w/o Cross-Attention", "w/o Cross-Attention, fused kernel")
    ours, twin, fused = labels
    unlike = dict.fromkeys(ABLATED, run_id(SELF))
    models = [
        Model("w/o SIT", "SIT", dict.fromkeys(ABLATED, run_id(NO_SIT))),
        Model(twin, f"self-attention{HELD}", unlike),
        Model(fused, "self-attention", unlike, printed=False),
        Model(ours, "SIT", dict.fromkeys(ABLATED, run_id("cvrp_1k"))),
    ]
    compared = Comparison(study, "cvrp", ABLATED, models)
    without = study.runs.get(run_id(NO_SIT))
    labelled = f" (CVRP{without.n} here, {without.training.samples:,} solutions)" if without else ""
    reference = reference_note(study, ["cvrp"], ABLATED)
    return compared.table(labels, reference=reference, labelled=labelled, schedule=_schedule(study))


def _schedule(study: Study) -> str:
    """Say how the twin's learning rate differs from that of ours, where it does."""
    runs = (study.runs.get(run_id(name)) for name in ("warm_cvrp", "cvrp_1k", SELF))
    trainings = [run.training for run in runs if run and isinstance(run.training, Reconstruction)]
    if len(trainings) < 3:
        return ""
    first, rest, whole = trainings
    ends = [t.learning_rate * t.decay_gamma ** (t.epochs_before + t.epochs) for t in (rest, whole)]
    if first.epochs + rest.epochs == whole.epochs and abs(ends[0] / ends[1] - 1) < 1e-6:
        return ""
    return (
        f", {whole.epochs} epochs with a learning rate that ends at {ends[1]:.2g} (ours: {first.epochs} and "
        f"{rest.epochs} epochs, {ends[0]:.2g}), so that attention is not all that differs"
    )


@artifact("Time and memory of greedy decoding", needs=lambda scale: [roles.efficiency_of(scale, "tsp")])
def table4(study: Study) -> Table:
    models = []
    for name in ("POMO", "SIGD", "LEHD"):
        models += [Model(name, f"{name}{HELD}"), Model(f"{name}, fused kernel", name, printed=False)]
    compared = Comparison(study, "tsp", SIZES, [*models, Model("Ours", "SIT")])
    return compared.table([model.label for model in compared.models], gaps=False)


def _table10_needs(scale: Scale) -> Iterator[Need]:
    yield from tested(BASELINES["cvrp"]["BQ"], [roles.reference(scale, "cvrp", size) for size in BQ_SIZES])
    for size in scale[SitScale].bq_sit:
        yield from tested(run_id(roles.with_cross_attention(size)), roles.reference(scale, "cvrp", size))
    yield roles.efficiency_of(scale, "cvrp")


@artifact("BQ with cross-attention and self-improved training", needs=_table10_needs)
def table10(study: Study) -> Table:
    """BQ as its authors have it, and with cross-attention and SIT."""
    origin = dict.fromkeys(BQ_SIZES, BASELINES["cvrp"]["BQ"])
    crossed = {int(size): run_id(roles.with_cross_attention(size)) for size in study.scale[SitScale].bq_sit}
    models = [
        Model("BQ origin", f"BQ{HELD}", origin),
        Model("BQ origin, fused kernel", "BQ", origin, printed=False),
        Model("BQ+Cross-Attention+SIT", "BQ+cross-attention", crossed),
    ]
    compared, both = Comparison(study, "cvrp", BQ_SIZES, models), models[-1].label
    absent = [short(size).upper() for size in BQ_SIZES if size not in crossed]
    return compared.table(
        [model.label for model in models],
        reference=reference_note(study, ["cvrp"], BQ_SIZES),
        n=study.runs[BASELINES["cvrp"]["BQ"]].n,
        absent=f"This scale trains no {both} at {', '.join(absent)}." if absent else "",
    )
