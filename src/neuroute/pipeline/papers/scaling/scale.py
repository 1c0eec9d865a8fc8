"""The sizes of paper `scaling`."""

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from neuroute.pipeline.plan.shapes import BaselineShape, DeepNarrow, Nodes, Positive, Shape, TrainingChange, names_each
from neuroute.specs.data import Spec as Strict
from neuroute.specs.trainings import SelfImprovement, Supervised

SIZES = (100, 200, 500, 1000)
DEEP = {"24x64", "96x32"}  # Table 2's models that are not the paper's twelve
CHANGED = {"small01M", "norezero", "data1M", "data10M"}
FEW = {f"small01M_{model}" for model in ("6x128", "6x512", "42x128")}  # Table 3's, each by itself


class CvrpBaseline(BaselineShape):
    """LEHD for the CVRP, which no table of this paper shows: others borrow it."""

    customers: Nodes
    test_count: Positive
    validation_count: Positive
    label_solver: str = "hgs-short"
    reference_solver: str = "hgs"
    training: Supervised


Model = Annotated[str, Field(pattern=r"^[1-9]\d*x[1-9]\d*$")]  # "18x192"


class Rates(Strict):
    """Learning rates by shape, our own: the best of short trainings at the grid's corners, interpolated between them.

    Beyond the corners the nearest one counts.  Table 22 shows the validation gaps that chose.
    """

    tried: Annotated[
        dict[Model, Annotated[list[float], Field(min_length=2)]],
        Field(description="corner of the grid, by the paper's numbers -> rates that short trainings compare"),
    ]
    best: Annotated[dict[Model, float], Field(description="corner of the grid -> the rate with the lowest gap")]
    part: Annotated[int, Field(ge=2, description="a short training has this part of the samples")]

    @model_validator(mode="after")
    def _best_are_tried(self) -> "Rates":
        for corner, rate in self.best.items():
            if rate not in self.tried.get(corner, ()):
                raise ValueError(f"best: {corner} has {rate:g}, which is not tried there; add it to tried.{corner}")
        return self

    def of(self, model: DeepNarrow, corners: dict[str, DeepNarrow]) -> float:
        """Interpolate the logarithms of the corners' rates in those of depth and width, to three digits."""
        depths, widths = (sorted({getattr(c, key) for c in corners.values()}) for key in ("depth", "width"))
        at_depth, at_width = _place(model.depth, *depths), _place(model.width, *widths)
        rate = 0.0
        for name, corner in corners.items():
            share = (at_depth if corner.depth == depths[1] else 1 - at_depth) * (
                at_width if corner.width == widths[1] else 1 - at_width
            )
            rate += share * math.log(self.best[name])
        return float(f"{math.exp(rate):.3g}")


def _place(value: int, low: int, high: int) -> float:
    """Where a number lies between two others by its logarithm, from 0 to 1."""
    return min(max(math.log(value / low) / math.log(high / low), 0.0), 1.0)


def at_rate(training: Supervised, rate: float) -> Supervised:
    """Return a training at another rate, which falls to the same share of it."""
    final = training.final_learning_rate
    scaled = final and float(f"{final * rate / training.learning_rate:.3g}")
    return training.model_copy(update={"learning_rate": rate, "final_learning_rate": scaled})


def part_of(training: Supervised, part: int) -> Supervised:
    """Return a training on so small a part of the samples, with a whole schedule of its own."""
    t = training
    small = {"samples": t.samples // part, "warmup_batches": t.warmup_batches // part}
    return t.model_copy(update=small | {"validations": max(1, t.validations // part)})


class ScalingScale(Strict):
    """What the roles of paper `scaling` stand for at this scale.  Keys are the paper's numbers."""

    sizes: Annotated[dict[int, Nodes], Field(description="the paper's n -> nodes here")]
    rival_solver: Annotated[str, Field(description="Tables 12 to 16: solver of LKH3's row")] = "lkh"
    rival_on: Annotated[
        Literal["in-domain", "all"], Field(description="the test sets that it is run on: Table 12's, or all")
    ] = "in-domain"
    test_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> test instances here")]
    shifted_counts: Annotated[
        dict[int, Positive], Field(description="Tables 14-16: the paper's n -> test instances here; default: as above")
    ] = {}
    validation_count: Annotated[int, Field(ge=1, description="validation instances")] = 1000
    depths: Annotated[
        dict[Positive, Positive], Field(description="depth -> layers here: the paper's, and others that join the grid")
    ]
    widths: Annotated[
        dict[Positive, Shape], Field(description="width -> shape here: the paper's, and others that join the grid")
    ]
    more_models: Annotated[
        dict[Model, DeepNarrow],
        Field(description="single models that join the grid: '18x192'"),
    ] = {}
    deep_narrow: Annotated[
        dict[Literal["6x128", "24x64", "96x32"], DeepNarrow],
        Field(description="Table 2's shapes: '24x64', '96x32', and '6x128' where it is not the grid's"),
    ]
    beams: Annotated[dict[int, Positive], Field(description="Table 18's beam widths -> beam widths here")]
    beam_count: Annotated[int, Field(ge=1, description="Table 18, Figures 4 and 6: test instances")]
    budgets: Annotated[
        dict[str, dict[Literal["limited", "sufficient"], Positive]],
        Field(description="Table 4: model -> beam width of each budget"),
    ]
    budget_count: Annotated[int, Field(ge=1, description="Table 4: test instances")]
    latency_batches: Annotated[dict[int, Positive], Field(description="Table 17: batch size -> here")]
    rrc: Annotated[dict[int, Positive], Field(description="Table 19: iterations of random re-construct -> here")]
    rrc_counts: Annotated[dict[int, Positive], Field(description="Table 19: the paper's n -> test instances here")]
    tsplib_max_nodes: Annotated[int, Field(ge=51, description="Table 6: instances below this many nodes")] = 5000
    probe_count: Annotated[int, Field(ge=1, description="Figure 12: test instances with optimal tours")] = 1000
    training: Supervised
    rates: Annotated[
        Rates | None, Field(description="learning rates by shape instead of training's; null: one for all models")
    ] = None
    parts: Annotated[
        list[Annotated[int, Field(ge=2)]],
        Field(description="Figure 3: parts of the samples, each with a training of its own; none: gaps while training"),
    ] = []
    changes: Annotated[
        dict[str, TrainingChange],
        Field(description="Tables 3 and 11, Figure 8: what runs change of `training`; one run: deep_24x64"),
    ]
    lehd: Annotated[dict[str, BaselineShape], Field(description="Table 20's shapes of LEHD: '6x128', '24x64'")]
    lehd_training: Supervised
    lehd_cvrp: CvrpBaseline
    bq: BaselineShape
    bq_training: Supervised
    sigd: BaselineShape
    sigd_training: SelfImprovement

    _named = names_each(
        sizes=SIZES,
        test_counts=SIZES,
        beams={1, 2, 4, 8, 16, 32, 64},
        budgets={"6x128", "6x512", "24x128", "42x128"},
        latency_batches={50, 100, 1000},
        rrc={100, 200, 500, 800, 1000},
        rrc_counts={100, 1000},
        lehd={"6x128", "24x64"},
    )

    def model(self, depth: int, width: int) -> DeepNarrow:
        """What a model of the grid is here."""
        if single := self.more_models.get(f"{depth}x{width}"):
            return single
        here = self.widths[width]
        return DeepNarrow(depth=self.depths[depth], width=here.width, heads=here.heads)

    @property
    def corners(self) -> dict[str, DeepNarrow]:
        """The least and the most of the paper's depths and widths."""
        return {f"{depth}x{width}": self.model(depth, width) for depth in (6, 42) for width in (128, 512)}

    def recipe(self, model: DeepNarrow) -> Supervised:
        """How a model of the grid is trained: at the rate of its shape, where the scale has such."""
        return self.training if self.rates is None else at_rate(self.training, self.rates.of(model, self.corners))

    @model_validator(mode="after")
    def _grid_holds_the_papers(self) -> "ScalingScale":
        for name, numbers in {"depths": {6, 12, 24, 42}, "widths": {128, 256, 512}}.items():
            if missing := numbers - set(getattr(self, name)):
                raise ValueError(
                    f"{name} must name the paper's {sorted(numbers)}, and may name more; add {min(missing)}"
                )
        crossed = {f"{depth}x{width}" for depth in self.depths for width in self.widths}
        if twice := sorted(crossed & set(self.more_models)):
            raise ValueError(f"more_models: depths and widths have {twice[0]} already; leave it out")
        if missing_deep := sorted(DEEP - set(self.deep_narrow)):
            raise ValueError(f"deep_narrow must name '24x64' and '96x32'; add {missing_deep[0]}")
        if deep := sorted((crossed | set(self.more_models)) & DEEP):
            raise ValueError(
                f"{deep[0]} is a model of Table 2; change it in deep_narrow, or name another depth or width"
            )
        return self

    @model_validator(mode="after")
    def _rates_are_of_the_corners(self) -> "ScalingScale":
        if self.rates is not None:
            for key in ("tried", "best"):
                if missing := sorted(set(self.corners) ^ set(getattr(self.rates, key))):
                    raise ValueError(
                        f"rates.{key} must name exactly the grid's corners {sorted(self.corners)}; "
                        f"{missing[0]} is {'no corner' if missing[0] not in self.corners else 'missing'}"
                    )
        return self

    @model_validator(mode="after")
    def _parts_fit(self) -> "ScalingScale":
        single = {f"deep_{shape}" for shape in self.deep_narrow} | FEW
        if set(self.changes) - single != CHANGED:
            may = ", ".join(sorted(single))
            raise ValueError(f"changes must name {sorted(CHANGED)}, and may name {may}; got {sorted(self.changes)}")
        for name, count, limit in (
            ("beam_count", self.beam_count, self.test_counts[100]),
            ("budget_count", self.budget_count, self.test_counts[100]),
            ("probe_count", self.probe_count, self.test_counts[100]),
            ("rrc_counts.100", self.rrc_counts[100], self.test_counts[100]),
            ("rrc_counts.1000", self.rrc_counts[1000], self.test_counts[1000]),
        ):
            if count > limit:
                raise ValueError(f"{name} is {count}, but test_counts has only {limit} instances")
        return self
