"""The trainings of the networks that come with the package, and their labels."""

from __future__ import annotations

from neuroute.papers.zoo.scale import TestedBlock, ZooScale
from neuroute.plan.changes import apply_changes, seed_of
from neuroute.plan.config import Config, Scale
from neuroute.plan.label_blocks import longest
from neuroute.plan.objects import Dataset, LabelJob, Labels, Network, Problem, Reinforced, Run, Split, Supervised
from neuroute.problems.vrp_variants import SWITCHES

PAPER = "zoo"
TSP, CVRP, VRP = (f"{PAPER}/{name}" for name in ("tsp", "cvrp", "vrp"))
VARIANTS = tuple(SWITCHES)


def labels(scale: Scale, problem: Problem, split: Split, n: int, count: int) -> Labels:
    """Solved instances of the TSP or the CVRP to validate, or to test, on."""
    block: TestedBlock = scale[ZooScale].tsp if problem == "tsp" else scale[ZooScale].cvrp
    return Labels(dataset=Dataset(problem=problem, split=split, n=n, count=count), solver=block.reference)


def test_sets(scale: Scale, problem: Problem) -> dict[int, Labels]:
    """Nodes, or customers -> the test set of that size."""
    block: TestedBlock = scale[ZooScale].tsp if problem == "tsp" else scale[ZooScale].cvrp
    return {n: labels(scale, problem, "test", n, count) for n, count in block.test_counts.items()}


def vrp_labels(scale: Scale, split: Split, variant: str) -> Labels:
    """Solved instances of a VRP variant to validate, or to test, on."""
    v = scale[ZooScale].vrp
    count = v.validation_count if split == "val" else v.test_count
    dataset = Dataset(problem="vrp", variant=variant, split=split, n=v.nodes, count=count)
    return Labels(dataset=dataset, solver=v.reference_of(variant))


def runs(config: Config, scale: Scale) -> list[Run]:
    return [_tsp(config, scale), _cvrp(config, scale), _vrp(config, scale)]


def _tsp(config: Config, scale: Scale) -> Run:
    t = scale[ZooScale].tsp
    return Run(
        paper=PAPER,
        name="tsp",
        network=Network(
            kind="neuroute.networks.icam:Icam", arguments=t.network.model_dump() | {"train_nodes": t.nodes}
        ),
        training=apply_changes(config, TSP, Reinforced, t.training),
        n=t.nodes,
        data=(),
        validation=labels(scale, "tsp", "val", t.nodes, t.validation_count),
        seed=seed_of(config, TSP),
    )


def _cvrp(config: Config, scale: Scale) -> Run:
    c = scale[ZooScale].cvrp
    training = apply_changes(config, CVRP, Supervised, c.training)
    dataset = Dataset(problem="cvrp", split="train", n=c.nodes, count=training.samples)
    return Run(
        paper=PAPER,
        name="cvrp",
        network=Network(
            kind="neuroute.networks.sit:SitCvrp", arguments=c.network.model_dump() | {"train_nodes": c.nodes}
        ),
        training=training,
        n=c.nodes,
        data=(Labels(dataset=dataset, solver=c.label_solver),),
        validation=labels(scale, "cvrp", "val", c.nodes, c.validation_count),
        seed=seed_of(config, CVRP),
    )


def _vrp(config: Config, scale: Scale) -> Run:
    v = scale[ZooScale].vrp
    stages = tuple(stage.model_copy(update={"variants": VARIANTS}) for stage in v.training.stages)
    training = v.training.model_copy(update={"stages": stages})
    first, *others = [vrp_labels(scale, "val", variant) for variant in VARIANTS]
    return Run(
        paper=PAPER,
        name="vrp",
        network=Network(
            kind="neuroute.networks.mvmoe:MvMoe",
            arguments=v.network.model_dump() | {"experts": 0, "train_nodes": v.nodes},
        ),
        training=apply_changes(config, VRP, Reinforced, training),
        n=v.nodes,
        data=(),
        validation=first,
        also_validation=tuple(others),
        seed=seed_of(config, VRP),
    )


def label_jobs(scale: Scale, runs: list[Run]) -> list[LabelJob]:
    """One job for each network's training and validation, one for all tests."""
    jobs = [
        LabelJob(paper=PAPER, name=run.name, labels=tuple(longest([*run.data, run.validation, *run.also_validation])))
        for run in runs
    ]
    tests = [*test_sets(scale, "tsp").values(), *test_sets(scale, "cvrp").values()]
    tests += [vrp_labels(scale, "test", variant) for variant in VARIANTS]
    return [*jobs, LabelJob(paper=PAPER, name="tests", labels=tuple(tests))]
