"""Systems of installed packages in the plan (`core/dotted.py` finds them): each brings all that is its own.

A system is a package that an entry point of the group `neuroute.systems` names, and has:

1. `network.py`: the network.  `layout.py`, where weights are published: `LAYOUTS`, see `networks/layouts.py`.
2. `system.py`: a block class on `Trained` (shape, training), a function (config, scale, block) -> [Rival] that calls
   `rival` once for each network, and both as `SYSTEM`.  Its runs are `rivals/<name>`.
3. A scale file with the block `rivals.<name>`; for those of `extras/systems` at smoke and laptop, with the published
   protocol at gpu and paper, and then `make schema`.
4. In the papers that print it: the ids of its runs in `roles.RIVALS`, and `runs=`, `decoding=` of the row's `Method`.

Where a scale has no block, or no package has the system, these rows show the printed numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from neuroute.pipeline.plan.changes import declare_run
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.shapes import Nodes, Positive
from neuroute.specs.data import Spec, training_blocks
from neuroute.specs.decodings import revise
from neuroute.specs.objects import Dataset, Decoding, Labels, Network, Problem, Run, Training

PAPER = "rivals"  # the runs' common home
# Systems that several papers print: runs, and how these decode.
ELG: dict[Problem, str] = {"tsp": f"{PAPER}/elg_tsp", "cvrp": f"{PAPER}/elg_cvrp"}
DIFUSCO, GLOP, HTSP = f"{PAPER}/difusco", f"{PAPER}/glop", f"{PAPER}/htsp"
TREE_SEARCH, GROWN = Decoding(method="edge_maps:tree_search"), Decoding(method="htsp:grow")
REVISED, PARTED = revise(), Decoding(method="glop:partition", solver="lkh")  # GLOP, GLOP-G


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


class System(NamedTuple):
    """What a system's `system.py` says."""

    block: type[Spec]  # of a scale: `rivals.<name>`
    rivals: Callable[[Config, Scale, Any], list[Rival]]  # (config, scale, block) -> its networks


def rival(
    config: Config,
    system: str,
    name: str,
    problem: Problem,
    block: Any,
    kind: str,
    decoding: Decoding,
    *,
    shape: dict[str, Any] | None = None,
    training: Training | None = None,
    **more: Any,
) -> Rival:
    """A run `rivals/<name>` of a `Trained`, with what config.yaml changes of it.

    kind, shape: of its network; shape and training, where they are None, are the block's.  more: fields of its `Run`
    (data, start, ...).
    """
    shape, training = shape or block.network.model_dump(), training or block.training
    network = Network(kind=kind, arguments={"train_nodes": block.nodes} | shape)
    validation = _labels(problem, block, training, "val", block.validation_count)
    usual: dict[str, Any] = {"role": {"method": system}, "network": network, "n": block.nodes}
    run = declare_run(config, PAPER, name, training, validation=validation, **usual | more)
    return Rival(system, run, decoding, _labels(problem, block, training, "test", block.test_count))


def training_labels(scale: Scale, block: Trained) -> Callable[[Any], tuple[Labels, ...]]:
    """Solved TSPs of the training stream, for a run's `data`: as many as its training takes."""
    return lambda training: training_blocks(block.nodes, training.samples, scale.label_solver)


def _labels(problem: Problem, block: Trained, training: Training, split: Any, count: int) -> Labels:
    """Instances like those of the training, of its capacity where it states one."""
    capacity = getattr(training, "capacity", None)
    dataset = Dataset(problem=problem, split=split, n=block.nodes, count=count, capacity=capacity)
    return Labels(dataset=dataset, solver=block.reference)
