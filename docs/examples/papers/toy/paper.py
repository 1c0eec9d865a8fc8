"""A toy paper: one network, which one training makes, one table and one figure."""

from neuroute.pipeline.plan.changes import apply_changes, seed_of
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.shapes import Nodes, Positive, Shape
from neuroute.specs.data import training_blocks
from neuroute.specs.objects import Dataset, Labels, Network, Run, Spec, Split, Supervised

RUN = "toy/decoder"


class ToyScale(Spec):
    """The block `toy:` of a scale file."""

    nodes: Nodes
    count: Positive
    depth: Positive
    shape: Shape
    training: Supervised


def instances(scale: Scale, split: Split) -> Labels:
    """Labelled instances to validate, or to test, on."""
    s = scale[ToyScale]
    return Labels(dataset=Dataset(split=split, n=s.nodes, count=s.count), solver=scale.reference_solver)


def runs(config: Config, scale: Scale) -> list[Run]:
    s, training = scale[ToyScale], apply_changes(config, RUN, scale[ToyScale].training)
    arguments = {"depth": s.depth, "width": s.shape.width, "heads": s.shape.heads, "train_nodes": s.nodes}
    return [
        Run(
            paper="toy",
            name="decoder",
            network=Network(kind="neuroute.networks.decoder_only:DecoderOnly", arguments=arguments),
            training=training,
            n=s.nodes,
            data=training_blocks(s.nodes, training.samples, scale.label_solver),
            validation=instances(scale, "val"),
            seed=seed_of(config, RUN),
        )
    ]


PAPER = Paper(key="toy", title="A toy", scale=ToyScale, runs=runs)
