"""What every rival system declares: its runs, how its authors decode, and on what it is validated and tested."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from pydantic import Field

from neuroute.plan.changes import declare_run
from neuroute.plan.config import Config
from neuroute.plan.objects import Dataset, Decoding, Labels, Network, Problem, Run, Training
from neuroute.plan.shapes import Nodes, Positive
from neuroute.plan.specs import Spec

PAPER = "rivals"


class Trained(Spec):
    """What one training of a system is validated and tested on; its own block adds network and training."""

    nodes: Annotated[Nodes, Field(description="nodes, or customers, of validation and test instances")]
    validation_count: Positive
    test_count: Positive
    reference: Annotated[str, Field(description="solver of the reference solutions")]


class Rival(NamedTuple):
    """One trained network of a system."""

    system: str  # as the papers' tables print it
    run: Run
    decoding: Decoding  # as its authors decode
    test: Labels  # of the size that it is trained on


def rival(
    config: Config,
    system: str,
    name: str,
    problem: Problem,
    block: Trained,
    network: Network,
    training: Training,
    decoding: Decoding,
    **more: Any,
) -> Rival:
    """A run `rivals/<name>`, with what config.yaml changes of it; more: fields of its `Run` (data, start, ...)."""
    validation = _labels(problem, block, "val", block.validation_count)
    usual: dict[str, Any] = {"role": {"method": system}, "network": network, "n": block.nodes}
    run = declare_run(config, PAPER, name, training, validation=validation, **usual | more)
    return Rival(system, run, decoding, _labels(problem, block, "test", block.test_count))


def _labels(problem: Problem, block: Trained, split: Any, count: int) -> Labels:
    return Labels(dataset=Dataset(problem=problem, split=split, n=block.nodes, count=count), solver=block.reference)
