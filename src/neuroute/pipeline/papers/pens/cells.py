"""What the tables and figures of paper `pens` share: test sets, looks, and what is to be said of gaps."""

from collections.abc import Collection, Iterable
from itertools import product

from neuroute.pipeline.papers.pens import roles
from neuroute.pipeline.papers.pens.scale import PensScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import BOOTSTRAP, ONE_SEED, printed_numbers, solver_name
from neuroute.pipeline.rendering.columns import described
from neuroute.pipeline.rendering.study import Study
from neuroute.specs.objects import Dataset, Decoding, Labels


def sets_of(scale: Scale, sizes: Iterable[int]) -> dict[int, Labels]:
    """Return the test sets that stand for the paper's sizes."""
    return {size: roles.reference(scale, size) for size in sizes}


def not_trained(study: Study) -> str:
    """Name the solvers of Tables 2 and 3 that this artifact has no run of; nothing if it has all."""
    others = [m.name for m in roles.methods(study.scale) if m.run not in study.runs]
    return f" Not trained here: {', '.join(others)}." if others else ""


def gap_notes(study: Study, runs: Iterable[str], sets: Collection[Dataset], *decodings: Decoding) -> list[str]:
    """What a gap is here, over these cells: the training, several solutions of an instance, how far these are apart."""
    runs = list(runs)
    training = study.runs[next(run for run in runs if run.startswith(f"{roles.PAPER}/"))].training
    random = "embeddings" + (" (INViT: starts)" if set(runs) & set(roles.INVIT.values()) else "")
    spreads = [study.value("gap_spread_pct", run, d, how) for run in runs for d in sets for how in decodings]
    spreads_here = [spread for spread in spreads if spread is not None]
    repeats = study.scale[PensScale].repeats
    notes = [
        f"{ONE_SEED} {BOOTSTRAP}",
        f"The paper's models learn here from {training.samples:,} labelled instances in {training.batches:,} batches; "
        "the paper does not say how many it had.",
    ]
    if repeats > 1:
        apart = f"; their gaps' standard deviation is {max(spreads_here):.3f} points at most" if spreads_here else ""
        notes.append(
            f"Gaps are means of the instances' gaps, over {repeats} solutions of each instance with different random "
            f"{random}{apart}. Models without random {random} would give the same tour each time, so they "
            "solve each instance once."
        )
    else:
        notes.append(
            "Gaps are means of the instances' gaps. Each instance is solved once here, five times in the paper."
        )
    return notes


def reference_notes(study: Study, largest: Dataset | None = None) -> list[str]:
    """Say which solver's tours the gaps are against, here and in the paper; largest: a table's set of that size."""
    usual, solver = (solver_name(s) for s in (study.scale.reference_solver, study.scale[PensScale].largest_solver))
    if largest is None:
        return [f"Gaps are against {usual}'s tours here, against Concorde's optima in the paper."]
    size = max(roles.SIZES)
    here = usual if usual == solver else f"{usual}'s tours, at TSP{size} ({described(largest)}) {solver}"
    return [
        f"Gaps are against {here}'s tours. The paper's are against Concorde's, at TSP{size} after at most six hours an "
        "instance, so that its references there need not be optimal."
    ]


COLOUR = {
    "coordns": style.GREEN,
    "pens_a": style.RAMPS["blue"][2],
    "pens_r": style.RAMPS["orange"][1],
    "pens_ar": style.RAMPS["cool-warm"][2],
}
MARKER = {"coordns": "s", "pens_a": "o", "pens_r": "D", "pens_ar": "^"}


def printed_gaps(study: Study, table: str, **where: object) -> dict[int, float]:
    """The paper's n -> its printed gap in % on uniform instances, of the rows whose columns hold `where`."""
    rows = printed_numbers(study, table, metric="gap_pct", distribution="uniform", **where)
    return {int(n): float(value) for n, value in zip(rows.n, rows.value, strict=True)}


def small_name(name: str) -> str:
    """What a small model of Figure 5 is called: PENS-A from zeros."""
    positions, initial = roles.SMALL[name]
    key = next(key for key, value in roles.POSITIONS.items() if value == positions)
    return f"{roles.NAMES[key]} from {'zeros' if initial == 'zero' else 'Gaussian embeddings'}"


def size_label(study: Study, size: int) -> str:
    """The nodes here that stand for the paper's size, with that size where it differs: 50 (500)."""
    here = study.scale[PensScale].sizes[size]
    return f"{here:,}" if here == size else f"{here:,} ({size:,})"


def several(study: Study) -> str:
    """How often instances are solved, where that is more than once."""
    repeats = study.scale[PensScale].repeats
    return f", models with random embeddings {repeats} times with different ones" if repeats > 1 else ""


def spread_note(study: Study, names: Iterable[str], datasets: Iterable[Dataset], *decodings: Decoding) -> list[str]:
    """How far apart the repeats of these cells are, at most; nothing where each was solved once."""
    spreads = [
        (value, name, dataset)
        for name, dataset, decoding in product(names, datasets, decodings)
        if (value := study.value("gap_spread_pct", roles.run_id(name), dataset, decoding)) is not None
    ]
    if not spreads:
        return []
    value, name, dataset = max(spreads, key=lambda each: each[0])
    where = f"{roles.NAMES.get(name) or small_name(name)}, TSP{dataset.n:,}"
    return [f"Between repeats the gap's standard deviation is at most {value:.2g} percentage points ({where})."]
