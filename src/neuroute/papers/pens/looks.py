"""How the models of paper `pens` look in its figures, and what several of them say."""

from collections.abc import Iterable
from itertools import product

from neuroute.analysis import RESAMPLES
from neuroute.papers.pens import roles
from neuroute.papers.pens.scale import PensScale
from neuroute.plan.objects import Dataset, Decoding
from neuroute.rendering import style
from neuroute.rendering.cells import printed
from neuroute.rendering.study import Study

COLOUR = {
    "coordns": style.GREEN,
    "pens_a": style.RAMPS["blue"][2],
    "pens_r": style.RAMPS["orange"][1],
    "pens_ar": style.RAMPS["cool-warm"][2],
}


MARKER = {"coordns": "s", "pens_a": "o", "pens_r": "D", "pens_ar": "^"}


def printed_gaps(study: Study, table: str, **where: object) -> dict[int, float]:
    """The paper's n -> its printed gap in % on uniform instances, of the rows whose columns hold `where`."""
    rows = printed(study, table, metric="gap_pct", distribution="uniform", **where)
    return {int(n): float(value) for n, value in zip(rows.n, rows.value, strict=True)}


def small_name(name: str) -> str:
    """What a small model of Figure 5 is called: PENS-A from zeros."""
    positions, initial = roles.SMALL[name]
    own = next(key for key, value in roles.POSITIONS.items() if value == positions)
    return f"{roles.NAMES[own]} from {'zeros' if initial == 'zero' else 'Gaussian embeddings'}"


def size_label(study: Study, size: int) -> str:
    """The nodes here that stand for the paper's size, with that size where it differs: 50 (500)."""
    here = study.scale[PensScale].sizes[size]
    return f"{here:,}" if here == size else f"{here:,} ({size:,})"


def repeats_note(study: Study) -> str:
    """How gaps were measured, for figures that show them."""
    repeats = study.scale[PensScale].repeats
    several = f", models with random embeddings {repeats} times with different ones" if repeats > 1 else ""
    return (
        f"Each instance is solved greedily{several}; gaps are of mean lengths. Thin lines: 95 % bootstrap intervals "
        f"over the test instances ({RESAMPLES:,} resamples). One training seed of each model."
    )


def spread_note(study: Study, names: Iterable[str], datasets: Iterable[Dataset], *decodings: Decoding) -> list[str]:
    """How far apart the repeats of these cells are, at most; nothing where each was solved once."""
    found = [
        (value, name, dataset)
        for name, dataset, decoding in product(names, datasets, decodings)
        if (value := study.value("gap_spread_pct", roles.run_id(name), dataset, decoding)) is not None
    ]
    if not found:
        return []
    value, name, dataset = max(found, key=lambda each: each[0])
    where = f"{roles.NAMES.get(name) or small_name(name)}, TSP{dataset.n:,}"
    return [f"Between repeats the gap's standard deviation is at most {value:.2g} percentage points ({where})."]
