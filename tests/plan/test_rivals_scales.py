"""Rivals: trained as their published code trains them, and measured in every table that prints them."""

from typing import Any

import pytest

from neuroute.evaluation.counts import counts
from neuroute.pipeline.papers.rivals.paper import RivalsScale, rivals
from neuroute.pipeline.plan.config import Config, load_scale
from neuroute.specs.objects import Reinforced, Run
from neuroute_systems.dgl.system import BeamPool
from neuroute_systems.glop.system import Partitioning
from neuroute_systems.htsp.system import HtspTraining, Proximal
from neuroute_systems.mdam.system import WarmBaseline
from neuroute_systems.rollouts.spec import GreedyBaseline


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return {each.run.name: each.run for each in rivals(Config(), load_scale("paper"))}


def test_dgl(runs: dict[str, Run]) -> None:
    """256 instances, 100 x 100 loops of 99 updates; a beam of 4 from 16 starts; an eighth is new; x0.97 in 5 epochs."""
    training, network = runs["dgl"].training, runs["dgl"].network
    assert training == BeamPool()
    wanted: dict[str, Any] = {"pool": 256, "epochs": 100, "loops": 100, "renewed": 32, "beam": 4, "starts": 16}
    wanted |= {"learning_rate": 1e-4, "weight_decay": 1e-6, "decay_gamma": 0.97, "decay_every": 5, "keep": "last"}
    assert {name: getattr(training, name) for name in wanted} == wanted
    assert (runs["dgl"].n, network.arguments["nearest"], runs["dgl"].data) == (100, 30, ())


def test_pointerformer(runs: dict[str, Run]) -> None:
    """500 epochs of 100,000 instances in batches of 64, all starts, a constant rate."""
    training = runs["pointerformer"].training
    assert isinstance(training, Reinforced)
    (stage,) = training.stages
    assert (training.scaled, training.weight_decay, training.clip) == ("deviation", 1e-6, None)
    assert (stage.epochs, stage.batch_size, stage.sizes, stage.starts) == (500, 64, (100, 100), None)
    assert 0 <= stage.batches_per_epoch * stage.batch_size - 100_000 < 64
    assert {training.learning_rate(index) for index in range(0, training.batches, 50_000)} == {1e-4}


def test_htsp(runs: dict[str, Run]) -> None:
    """300 epochs of 100,000 paths, the rate falling after every second; then 2,000 batches of both levels."""
    lower, both = (runs[name].training for name in ("htsp_lower", "htsp"))
    assert isinstance(lower, HtspTraining)
    assert isinstance(both, HtspTraining)
    (paths,), (together,) = lower.stages, both.stages
    assert paths.batches * paths.batch_size == pytest.approx(300 * 100_000, rel=1e-2)
    assert (paths.rate(0), paths.rate(1), paths.sizes) == (1e-3, 0.99e-3, (200, 200))
    assert (both.batches, together.batch_size, both.updates, together.learning_rate) == (2000, 12, 20, 1e-4)
    assert both.upper == Proximal()
    assert {t.weight_decay for t in (lower, both)} == {1e-6}
    assert both.batches_before == lower.batches
    assert runs["htsp"].start == "rivals/htsp_lower"


def test_mdam(runs: dict[str, Run]) -> None:
    """100 epochs of 1,280,000 instances in batches of 512, a constant rate; five decoders, glimpses every two steps."""
    for name, size in {"mdam_tsp": 1_167_360, "mdam_cvrp": 1_086_336}.items():
        training, network = runs[name].training, runs[name].network
        assert isinstance(training, Reinforced)
        (stage,) = training.stages
        assert (training.clip, training.divergence, training.weight_decay) == (1.0, 0.01, 0.0)
        assert training.baseline == WarmBaseline(instances=10_000, alpha=0.05, warm_up=0.8)
        assert (stage.epochs, stage.batch_size, stage.sizes, stage.starts) == (100, 512, (100, 100), 1)
        assert stage.batches_per_epoch * stage.batch_size == 1_280_000
        assert {training.learning_rate(index) for index in range(0, training.batches, 50_000)} == {1e-4}
        assert (network.arguments["decoders"], network.arguments["glimpse_every"]) == (5, 2)
        assert counts(network).parameters == size


def test_invit(runs: dict[str, Run]) -> None:
    """8 instances in 16 images, 300 batches an epoch, x0.99 after each, AdamW; compared on 80 batches of 8."""
    sizes = {"invit_2v": 1_718_528, "invit_3v": 2_642_816, "invit_cvrp": 2_264_576}  # pens, Table 4: 1.7M, 2.6M
    for name, size in sizes.items():
        training, network = runs[name].training, runs[name].network
        assert isinstance(training, Reinforced)
        (stage,) = training.stages
        assert (training.decoupled, training.weight_decay, training.clip) == (True, 0.01, None)
        assert training.baseline == GreedyBaseline(instances=80 * 8, margin=1e-3)
        assert (stage.batch_size, stage.images, stage.starts, stage.sizes) == (8, 16, 1, (100, 100))
        assert (stage.epochs, stage.batches_per_epoch, stage.learning_rate, stage.decay) == (400, 300, 1e-4, 0.99)
        assert network.arguments["views"] == [35, 50, 65][: 2 if name == "invit_2v" else 3]
        assert network.arguments["actions"] == 15
        assert counts(network).parameters == size


@pytest.mark.parametrize(
    ("name", "n", "capacity", "batch", "solutions"),
    [("glop_g", 1000, 200, 5, 20), ("glop_g_2k", 2000, 300, 3, 10), ("glop_g_cvrplib", 2000, 300, 3, 10)],
)
def test_glop_g(runs: dict[str, Run], name: str, n: int, capacity: int, batch: int, solutions: int) -> None:
    """20 epochs of 256 steps, the best of them by 100 instances like those of the training."""
    training, validation = runs[name].training, runs[name].validation.dataset
    assert isinstance(training, Partitioning)
    assert (training.batches, training.batch_size, training.solutions) == (20 * 256, batch, solutions)
    assert (training.capacity, training.keep, training.validations) == (capacity, "best", 20)
    assert (validation.count, validation.n, validation.capacity) == (100, n, capacity)


# -- in the tables that print them ------------------------------------------------------------------------------------


def test_a_paper_that_a_scale_leaves_apart_is_made_where_it_is_named() -> None:
    """None of the five papers, and half of laptop's hours: other papers' rows of its systems show printed numbers."""
    usual, named = load_scale("laptop"), load_scale("laptop", ["rivals"])
    assert "rivals" in usual.apart
    assert usual[RivalsScale].model_fields_set == {"elg", "pointerformer"}  # which icam compares with
    assert {"elg", "glop"} <= named[RivalsScale].model_fields_set
