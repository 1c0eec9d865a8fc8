"""What paper `sit` declares: its trainings as printed, sizes that are not trained, and scales that are refused."""

import csv
from pathlib import Path

import pytest

from neuroute.papers.sit.scale import SitScale
from neuroute.plan.build import build_plan
from neuroute.plan.config import Config
from neuroute.plan.objects import (
    Reconstruction,
)
from own_scale import ROOT, refused, smoke_with, written


def test_paper_scale_is_the_papers_for_sit() -> None:
    """sit, Section 5 and Tables 5 and 6, against the printed settings themselves."""
    plan = build_plan(Config(scale="paper"))
    with (ROOT / "src/neuroute/papers/sit/published/table6.csv").open() as file:
        printed = {row["key"]: float(row["value"]) for row in csv.DictReader(file)}
    for size, name in {1000: "1k", 5000: "5k", 10_000: "10k", 50_000: "50k", 100_000: "100k"}.items():
        for problem in ("tsp", "cvrp"):
            run = plan.runs[f"sit/{problem}_{name}"]
            t = run.training
            assert isinstance(t, Reconstruction)
            assert run.n == size
            assert run.start == (f"sit/warm_{problem}" if size == 1000 else f"sit/{problem}_1k")
            own = {
                key.split(".")[1]: v
                for key, v in printed.items()
                if key.split(".")[0] == run.name.upper().replace("_", "")
            }
            assert t.samples == own["dataset_size"]
            assert t.rounds == own["self_improved_iteration"]
            assert t.epochs_per_round == own["training_epoch"]
            assert t.batch_size == own["training_batch_size"]
            assert t.reconstructions == own["reconstruction_iteration"]
            assert (t.learning_rate, t.decay_gamma) == (1e-4, 0.97)
            assert (t.longest, t.clip, t.initial, t.starts, t.rule) == (None, None, "labels", "instance", "cut-off")
            assert t.validations == t.epochs
    shape = {"depth": 6, "width": 128, "heads": 8, "feed_forward": 512, "representatives": 15, "train_nodes": 1000}
    assert plan.runs["sit/tsp_1k"].network.arguments == shape
    assert plan.runs["sit/cvrp_self"].network.arguments["attention"] == "self"
    assert plan.runs["sit/tsp_10k_lmax100"].training.longest == 100  # Table 5
    tests = {t.labels.dataset.n: t.labels.dataset.count for t in plan.evaluations["sit/warm_tsp/sit"].tests}
    assert tests == {1000: 128}
    (budgets,) = (t.decoding for t in plan.evaluations["sit/cvrp_100k/sit"].tests if t.decoding.milestones)
    assert budgets.milestones == (0, 10, 50, 100, 500, 1000)
    assert budgets.start == "insertion-published"


def test_sizes_that_are_not_trained_take_the_next_smaller_model() -> None:
    plan = build_plan(Config(scale="smoke"))
    assert {"sit/tsp_1k", "sit/tsp_10k", "sit/cvrp_1k"} <= set(plan.runs)
    assert not {"sit/tsp_5k", "sit/tsp_100k", "sit/cvrp_5k"} & set(plan.runs)
    sizes = plan.scale[SitScale].tsp.sizes
    decoded = {
        t.labels.dataset.n for part in plan.evaluations["sit/tsp_10k/all"].members() for t in getattr(part, "tests", ())
    }
    assert {sizes[10_000], sizes[50_000], sizes[100_000]} <= decoded
    assert sizes[5000] not in decoded


def test_the_published_detachment_is_for_the_cvrp_alone(tmp_path: Path) -> None:
    scale = written(tmp_path, smoke_with("sit", ("network", "detach_customers"), True))
    plan = build_plan(Config(scale=scale, papers=["sit"]))
    assert plan.runs["sit/cvrp_1k"].network.arguments["detach_customers"]
    assert "detach_customers" not in plan.runs["sit/tsp_1k"].network.arguments


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("longest", "100"), 3, "longest"),
        (("longest", "10000"), 10**6, "give a number from 4 to tsp.sizes.10000"),
        (("repetitions", "7"), 1, "none of the paper's"),
        (("tsp", "warm_up", "reconstructions"), 1, "warm_up is one round"),
        (("tsp", "training", "1000", "validations"), 7, "no multiple"),
        (("cvrp", "tam_capacities", "1000"), None, "tam_capacities"),
        (("tsp", "training", "1000", "longest"), 2000, "longest is above"),
    ],
)
def test_sizes_of_sit_that_do_not_fit_are_refused(
    tmp_path: Path, path: tuple[str, ...], value: object, words: str
) -> None:
    refused(tmp_path, smoke_with("sit", path, value), words)
