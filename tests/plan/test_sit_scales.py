"""What paper `sit` declares: its trainings as printed, and sizes that are not trained."""

from pathlib import Path

from neuroute.pipeline.papers.sit.paper import SitScale
from neuroute.specs.objects import BenchmarkEvaluation, Reconstruction, SelfImprovement, Test
from plans import plan_of, read_published, smoke_with, write_scale


def test_paper_scale_is_the_papers_for_sit() -> None:
    """sit, Section 5 and Tables 5 and 6, against the printed settings themselves."""
    plan = plan_of("paper")
    printed = {row["key"]: float(row["value"]) for row in read_published("sit", 6)}
    for size, name in {1000: "1k", 5000: "5k", 10_000: "10k", 50_000: "50k", 100_000: "100k"}.items():
        for problem in ("tsp", "cvrp"):
            run = plan.runs[f"sit/{problem}_{name}"]
            t = run.training
            assert isinstance(t, Reconstruction)
            assert run.n == size
            assert run.start == (f"sit/warm_{problem}" if size == 1000 else f"sit/{problem}_1k")
            for key, value in {
                "dataset_size": t.samples,
                "self_improved_iteration": t.rounds,
                "training_epoch": t.epochs_per_round,
                "training_batch_size": t.batch_size,
                "reconstruction_iteration": t.reconstructions,
            }.items():
                assert printed[f"{run.name.upper().replace('_', '')}.{key}"] == value
            assert (t.learning_rate, t.decay_gamma) == (1e-4, 0.97)
            assert (t.longest, t.clip, t.initial, t.starts, t.rule) == (None, None, "labels", "instance", "cut-off")
            assert t.validations == t.epochs
    shape = {"depth": 6, "width": 128, "heads": 8, "feed_forward": 512, "representatives": 15, "train_nodes": 1000}
    assert plan.runs["sit/tsp_1k"].network.arguments == shape
    assert plan.runs["sit/cvrp_self"].network.arguments["attention"] == "self"
    assert plan.runs["sit/tsp_10k_lmax100"].training.longest == 100  # Table 5
    tests = {t.labels.dataset.n: t.labels.dataset.count for t in plan.evaluations["sit/warm_tsp/sit"].of_kind(Test)}
    assert tests == {1000: 128}
    (budgets,) = (t.decoding for t in plan.evaluations["sit/cvrp_100k/sit"].of_kind(Test) if t.decoding.milestones)
    assert budgets.milestones == (0, 10, 50, 100, 500, 1000)
    assert budgets.start == "insertion-published"
    bq, sigd = plan.runs["sit/bq_cvrp"], plan.runs["sit/sigd_cvrp"]
    assert (bq.training.step, bq.training.sub_paths, bq.training.keep) == ("decision", "suffix", "best")
    assert isinstance(sigd.training, SelfImprovement)
    assert (sigd.training.sigma, sigd.n, sigd.network.arguments["nearest"]) == (3.0, 100, 250)
    assert sigd.network.arguments == bq.network.arguments | {"nearest": 250}
    decodings = {t.decoding.name for t in plan.evaluations["scaling/lehd_cvrp/tests_sit"].of_kind(Test)}
    assert decodings == {"greedy", "rrc1000-l1000"}
    (search,) = plan.evaluations["sit/bq_cvrp/cvrplib_search"].of_kind(BenchmarkEvaluation)
    assert ([d.name for d in search.decodings], search.min_nodes, search.max_nodes) == (["beam16"], 1001, 7002)


def test_sizes_that_are_not_trained_take_the_next_smaller_model() -> None:
    plan = plan_of()
    assert {"sit/tsp_1k", "sit/tsp_10k", "sit/cvrp_1k"} <= set(plan.runs)
    assert not {"sit/tsp_5k", "sit/tsp_100k", "sit/cvrp_5k"} & set(plan.runs)
    sizes = plan.scale[SitScale].tsp.sizes
    decoded = {t.labels.dataset.n for t in plan.evaluations["sit/tsp_10k/all"].of_kind(Test)}
    assert {sizes[10_000], sizes[50_000], sizes[100_000]} <= decoded
    assert sizes[5000] not in decoded


def test_the_published_detachment_is_for_the_cvrp_alone(tmp_path: Path) -> None:
    runs = plan_of(write_scale(tmp_path, smoke_with("sit", ("network", "detach_customers"), True)), ("sit",)).runs
    assert runs["sit/cvrp_1k"].network.arguments["detach_customers"]
    assert "detach_customers" not in runs["sit/tsp_1k"].network.arguments
