"""What paper `icam` declares: its trainings as printed, and its tests as its tables ask."""

import json

import pytest
from published_trainings import single_size, three_stages

from neuroute.specs.data import Problem
from neuroute.specs.objects import Elite, Reinforced, Run
from plans import plan_of, read_published, reinforced


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_paper_scale_is_the_papers_for_icam(problem: Problem) -> None:
    """icam, Section 4 and Tables 5 and 7, against the printed settings themselves."""
    runs = plan_of("paper", ("icam",)).runs
    for name in (f"icam_{problem}", f"pomo3_{problem}"):
        assert _unvalidated(runs[f"icam/{name}"]) == three_stages(problem)
    assert _unvalidated(runs[f"icam/pomo_{problem}"]) == single_size(problem)
    rows = [(*row["key"].split("."), row["value"]) for row in read_published("icam", 5)]
    printed = {key: value for whose, key, value in rows if whose in ("both", problem.upper())}
    run = runs[f"icam/icam_{problem}"]
    shape = {"depth": "encoder_layers", "width": "embedding_dim", "feed_forward": "feed_forward_dim"}
    assert {key: run.network.arguments[key] for key in shape} == {k: int(printed[v]) for k, v in shape.items()}
    assert run.n == run.network.arguments["train_nodes"] == int(printed["scale_stage1"])
    t = reinforced(run)
    assert t.epochs == t.validations == int(printed["total_epochs"])
    for number, stage in enumerate(t.stages, 1):
        assert stage.epochs == int(printed[f"epochs_stage{number}"])
        assert stage.batches_per_epoch == int(printed["batches_per_epoch"])
        assert list(stage.sizes) == ([100, 100] if number == 1 else json.loads(printed["scale_stage2_3"]))
        if problem == "cvrp":
            capacities = [50, 50] if number == 1 else json.loads(printed["capacity_stage2_3"])
            assert list(stage.capacities or ()) == capacities
    assert t.stages[0].batch_size == int(printed["batch_size_stage1"])
    assert t.stages[-1].learning_rate == float(printed["learning_rate_stage3"])
    assert t.stages[-1].elite == Elite(k=int(printed["k_stage3"]), beta=float(printed["beta_stage3"]))
    assert t.clip == (float(printed["gradient_clipping_max_norm"]) if problem == "cvrp" else None)


def _unvalidated(run: Run) -> Reinforced:
    """How often a run looks at its gaps is no part of what is trained."""
    training = reinforced(run)
    stages = tuple(stage.model_copy(update={"validations": 1}) for stage in training.stages)
    return training.model_copy(update={"stages": stages})


def test_third_stages_go_on_where_the_second_ends() -> None:
    """icam, Table 10: each has the batches of the main run's third stage, and another elite."""
    plan = plan_of("paper", ("icam",))
    main = reinforced(plan.runs["icam/icam_tsp"])
    printed = {
        tuple(part.partition("=")[2] for part in row["method_params"].split(";")[2:])
        for row in read_published("icam", 10)
    }
    wanted = {f"k{k}_b{beta}" for k, beta in printed if (k, beta) != ("20", "0.1") and (beta != "0" or k == "20")}
    forks = {run.name: run for run in plan.runs.values() if run.start and run.paper == "icam"}
    assert set(forks) == wanted
    for name, run in forks.items():
        t = reinforced(run)
        (stage,) = t.stages
        assert run.start == "icam/icam_tsp@stage2"
        assert t.batches_before == main.ends[1]
        assert stage.elite
        assert f"k{stage.elite.k}_b{stage.elite.beta:g}" == name
        assert stage.model_copy(update={"elite": main.stages[2].elite}) == main.stages[2]
        assert run.network == plan.runs["icam/icam_tsp"].network
