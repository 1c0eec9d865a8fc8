"""The solvers that paper `pens` compares, and how each is decoded here; shared by its tables and figures."""

from collections.abc import Iterator
from dataclasses import dataclass

from neuroute.papers.pens.roles import (
    BQ,
    ESF,
    LEHD,
    NAMES,
    PAPER,
    RESCALED,
    TIMED,
    on_tsplib,
    reference,
    repeated,
    rescaled,
    rescaling,
    run_id,
)
from neuroute.papers.pens.scale import PensScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import Need, tested
from neuroute.plan.objects import Decoding

GREEDY = Decoding()


@dataclass(frozen=True)
class Method:
    """One of the solvers, by its printed name; without a run it is not measured here."""

    name: str
    run: str | None = None
    tsplib: str = ""  # the run's evaluation on TSPLIB
    decoding: Decoding = GREEDY
    rescaled: Decoding | None = None  # at the best scaling factor

    def decoded(self, scaled: bool) -> Decoding:
        """How it is decoded in a cell that the paper prints as rescaled, or not."""
        return self.rescaled if scaled and self.rescaled else self.decoding

    @property
    def timed(self) -> Decoding:
        """How it is timed: one instance at a time, once.  Rescaling is one product, so it is not timed anew."""
        return TIMED.model_copy(update={"esf": self.decoding.esf})


def methods(scale: Scale) -> tuple[Method, ...]:
    """In the order of Tables 2 and 3."""
    baselines = (
        Method("BQ-NCO", BQ, f"{BQ}/tsplib_{PAPER}"),
        Method("BQ-NCO + ESF", BQ, f"{BQ}/tsplib_{PAPER}", ESF),
        Method("LEHD", LEHD, f"{LEHD}/tsplib_{PAPER}"),
        *(Method(name) for name in ("INViT-2V", "INViT-3V", "DGL")),
    )
    own = (
        Method(NAMES[name], run_id(name), f"{run_id(name)}/tsplib", repeated(scale), rescaled(scale))
        for name in RESCALED
    )
    return (*baselines, *own)


def compared_needs(scale: Scale) -> Iterator[Need]:
    """The methods on all sizes, timed and not, and on TSPLIB."""
    for m in methods(scale):
        if m.run is None:
            continue
        yield on_tsplib(scale, m.run)
        for size, count in scale[PensScale].timed_counts.items():
            yield from tested(m.run, reference(scale, size), m.decoding, *([m.rescaled] if m.rescaled else []))
            yield from tested(m.run, reference(scale, size, count), m.timed)
    yield from (rescaling(scale, name) for name in RESCALED)
