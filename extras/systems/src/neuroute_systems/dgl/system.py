"""DGL (Xiao et al., 2025): the nearest open nodes, trained on a small pool that beams improve (pens, Tables 2-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.shapes import BaselineShape, Positive
from neuroute.pipeline.plan.systems import Rival, System, Trained, rival
from neuroute.specs.data import Precision
from neuroute.specs.objects import Decoding, Run
from neuroute.specs.trainings import OwnTraining

if TYPE_CHECKING:
    from neuroute.evaluation.flops import Counts

DGL = "neuroute_systems.dgl.network:Dgl"


class BeamPool(OwnTraining):
    """Training without labels on a small pool of instances that changes as it goes (Xiao et al., 2025).

    Each of an epoch's `loops` replaces some instances of the pool by new ones, searches all with beams from several
    starts, keeps a tour where it is shorter than the best so far, and imitates the best tours: one update for each
    decision.  Defaults are those of the published code for the TSP, where the rate falls every fifth epoch only, and
    the weights after the last update are the model.
    """

    scheme: ClassVar[str] = "neuroute_systems.dgl.training:beam_pool"
    kind: Literal["neuroute_systems.dgl.system:BeamPool"] = "neuroute_systems.dgl.system:BeamPool"
    pool: int = Field(256, ge=1)  # instances
    epochs: int = Field(100, ge=1)
    loops: int = Field(100, ge=1)  # of an epoch
    renewed: int = Field(32, ge=0)  # instances that a loop replaces
    beam: int = Field(4, ge=1)
    starts: int = Field(16, ge=1)  # drawn for each loop, the same for all instances
    learning_rate: float = Field(1e-4, gt=0)
    decay_gamma: float = Field(0.97, gt=0)
    decay_every: int = Field(5, ge=1)  # epochs
    weight_decay: float = Field(1e-6, ge=0)
    precision: Precision = "fp32"
    validations: int = Field(100, ge=1)

    @model_validator(mode="after")
    def _the_pool_holds_what_is_renewed(self) -> BeamPool:
        if self.renewed > self.pool:
            raise ValueError(f"renewed: {self.renewed} of a pool of {self.pool} instances; give at most as many")
        return self

    @property
    def batch_size(self) -> int:
        """Instances of a loop."""
        return self.pool

    @property
    def samples(self) -> int:
        """Instances of an epoch, counted anew in each loop."""
        return self.pool * self.loops

    def shortened(self, batches: int) -> BeamPool:
        return self.model_copy(update={"epochs": 1, "loops": min(self.loops, batches), "validations": 1})

    def flops_per_sample(self, counts: Counts, run: Run) -> float:
        from neuroute.evaluation import flops

        learnt = 3 * sum(counts.decision(tokens) for tokens in range(3, run.n + 2))
        return learnt + self.starts * flops.solution(counts.decision, run.n, self.beam)


class DglShape(BaselineShape):
    """A shape, and how many of the nearest open nodes a decision reads."""

    nearest: Positive


class DglScale(Trained):
    """How DGL for the TSP is trained here."""

    network: DglShape
    training: BeamPool


def rivals(config: Config, scale: Scale, block: DglScale) -> list[Rival]:
    return [rival(config, "DGL", "dgl", "tsp", block, DGL, Decoding())]


SYSTEM = System(DglScale, rivals)
