"""GLOP: revisers of blocks for the TSP, and GLOP-G, which parts the CVRP into routes (Ye et al., 2024)."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.shapes import BaselineShape, Positive, names_each
from neuroute.pipeline.plan.systems import PAPER, Rival, System, Trained, rival
from neuroute.specs.data import Precision, Spec
from neuroute.specs.decodings import Decoding, Revision, revise
from neuroute.specs.objects import Run
from neuroute.specs.trainings import InEpochs, OwnTraining

if TYPE_CHECKING:
    from neuroute.evaluation.flops import Counts

REVISERS = "glop"
PARTITIONS = {"1k": "glop_g", "2k": "glop_g_2k", "cvrplib": "glop_g_cvrplib"}  # what it is trained for -> its run


class Phase(InEpochs, Spec):
    """So many epochs on paths of one size.

    `drawn`: every path is new, uniform in a box that is 1 wide and of a height drawn from 0 to 1 (stage 1).
    `revised`: `samples` paths that stay, cut from what the revisers of larger blocks leave of random insertion on TSPs
    of `nodes` nodes: paths of the largest block from insertion's tours, at every place, of a smaller one from the next
    larger one's paths once that reviser has rebuilt them (stage 2).
    """

    block: Annotated[int, Field(ge=4)]  # nodes of a path
    source: Literal["drawn", "revised"] = "drawn"
    epochs: Positive
    samples: Positive  # paths of an epoch
    batch_size: Positive = 512
    learning_rate: float = Field(default=1e-4, gt=0)
    decay: float = Field(default=1.0, gt=0, le=1)  # of the learning rate, after each epoch
    nodes: Annotated[int, Field(ge=4)] = 500  # of the TSPs that paths are cut from


class Revising(OwnTraining):
    """REINFORCE on paths with both ends given, built from either end, against greedy rollouts of earlier weights.

    These are adopted anew where they are shorter in a paired t-test on `baseline_samples` paths, after an epoch; in the
    first epoch of a phase the baseline is a running mean of lengths (Kool et al., 2019).
    """

    scheme: ClassVar[str] = "neuroute_systems.glop.revising:revising"
    kind: Literal["neuroute_systems.glop.system:Revising"] = "neuroute_systems.glop.system:Revising"
    phases: tuple[Phase, ...] = Field(min_length=1)
    clip: float | None = Field(default=1.0, gt=0)  # largest norm of a gradient
    significance: float = Field(default=0.05, gt=0, lt=1)  # of the test of new weights for the baseline
    baseline_samples: int = Field(default=10_000, ge=2)
    warm_up: float = Field(default=0.8, ge=0, lt=1)  # weight of the past in the first epoch's mean
    weight_decay: float = 0.0
    precision: Precision = "fp32"
    validations: int = Field(default=20, ge=1)
    revision: Revision | None = None  # how validation tours are revised; None: as published

    @model_validator(mode="after")
    def _paths_fit_their_tours(self) -> Revising:
        for phase in self.phases:
            if phase.source == "revised" and phase.block > phase.nodes:
                raise ValueError(f"phases: paths of {phase.block} nodes of TSPs of {phase.nodes}")
        return self

    def shortened(self, batches: int) -> Revising:
        """Two epochs of each phase, as the baseline is judged from the second one on; on as many paths for a batch."""
        half, phases = batches // 2, []
        for phase in self.phases:
            samples = min(phase.samples, half * phase.batch_size)
            phases.append(phase.model_copy(update={"epochs": min(2, phase.epochs), "samples": samples}))
        share = half / max(phase.batches_per_epoch for phase in self.phases)
        judged = max(2, round(self.baseline_samples * min(1.0, share)))
        return self.model_copy(update={"phases": tuple(phases), "baseline_samples": judged, "validations": 1})

    def flops_per_sample(self, counts: Counts, run: Run) -> float:
        """Sampled and learnt, three times as much, and rolled out by the baseline."""
        from neuroute.evaluation.flops import revised_path

        total = sum(p.epochs * p.samples * 4 * revised_path(counts, p.block) for p in self.phases)
        return total / (self.samples * self.epochs)

    @property
    def ends(self) -> list[int]:
        """Batches behind the run at the end of each phase."""
        return list(accumulate(phase.batches for phase in self.phases))

    @property
    def batches(self) -> int:
        return self.ends[-1]

    @property
    def epochs(self) -> int:
        return sum(phase.epochs for phase in self.phases)

    @property
    def samples(self) -> int:
        """Paths of an epoch, on average."""
        return round(sum(phase.epochs * phase.samples for phase in self.phases) / self.epochs)

    @property
    def batch_size(self) -> int:
        """Paths of a batch, on average."""
        return round(self.samples * self.epochs / self.batches)

    def place(self, index: int) -> tuple[int, int]:
        """(phase, batch of that phase) of batch `index` of the run."""
        number = next(i for i, end in enumerate(self.ends) if index < end)
        return number, index - (self.ends[number] - self.phases[number].batches)


class Partitioning(OwnTraining):
    """REINFORCE on partitions of CVRPs into routes, each as long as revisers leave it; the baseline is the mean.

    The revisers are those of the run that it starts from.  AdamW, with a cosine to 0 over the epochs.
    """

    keep: ClassVar[str] = "best"  # by validation
    continues_start: ClassVar[bool] = False
    scheme: ClassVar[str] = "neuroute_systems.glop.partitioning:partitioning"
    kind: Literal["neuroute_systems.glop.system:Partitioning"] = "neuroute_systems.glop.system:Partitioning"
    epochs: Positive = 20
    samples: Positive = 1280  # instances of an epoch
    batch_size: Positive = 5
    solutions: int = Field(default=20, ge=2)  # partitions of an instance
    capacity: int | None = Field(default=None, ge=9)  # None: the rule for n customers
    learning_rate: float = Field(default=3e-4, gt=0)
    weight_decay: float = 0.01
    clip: float | None = Field(default=1.0, gt=0)
    precision: Literal["fp32"] = "fp32"
    validations: int = Field(default=20, ge=1)
    revision: Revision = Revision(blocks=((20, 5),), flips="none")  # of routes, as they are trained on

    def flops_per_sample(self, counts: Counts, run: Run) -> float:
        return 3 * counts.encoder(run.n + 1)


class ReviserShape(BaselineShape):
    """A reviser for each size of block."""

    blocks: Annotated[list[int], Field(min_length=1, description="nodes of blocks, falling")]
    shared: Annotated[bool, Field(description="one reviser, trained on the largest blocks, for all")] = False
    insertions: Annotated[
        tuple[int, int, int, int],
        Field(description="that tours start from: small ones, others, large ones, TSPLIB's"),
    ] = (35, 10, 1, 128)


class PartitionShape(Spec):
    """A graph network over each node's neighbours by direction."""

    depth: Annotated[int, Field(ge=1)]
    width: Annotated[int, Field(ge=1)]
    neighbours: Annotated[int, Field(ge=1, description="of a node, by the cosine of directions from the depot")]
    near: Annotated[bool, Field(description="rank neighbours by their distance, too, as published for CVRPLIB")] = False


class Revisers(Trained):
    """GLOP for the TSP; it is validated and tested by its revision of random insertion."""

    network: ReviserShape
    training: Revising


class Partition(Trained):
    """GLOP-G for the CVRP; its routes are solved by LKH, and while it is trained by the revisers."""

    network: PartitionShape
    training: Partitioning


class GlopBlock(Spec):
    tsp: Revisers
    cvrp: Annotated[
        dict[Literal["1k", "2k", "cvrplib"], Partition],
        Field(description="the partitions of CVRP1K, of larger drawn instances, and of CVRPLIB"),
    ]

    _named = names_each(cvrp=PARTITIONS)


def rivals(config: Config, scale: Scale, block: GlopBlock) -> list[Rival]:
    """The revisers, and the partitions that are trained by them."""
    shape = block.tsp.network.model_dump() | {"train_nodes": block.tsp.network.blocks[0]}
    kind, start = "neuroute_systems.glop.network:GlopPartition", f"{PAPER}/{REVISERS}"
    walk = Decoding(method="glop:partition", solver="lkh")
    return [
        rival(config, "GLOP", REVISERS, "tsp", block.tsp, "neuroute_systems.glop.network:Glop", revise(), shape=shape),
        *(
            rival(config, "GLOP-G (LKH3)", PARTITIONS[name], "cvrp", each, kind, walk, start=start)
            for name, each in block.cvrp.items()
        ),
    ]


SYSTEM = System(GlopBlock, rivals)
