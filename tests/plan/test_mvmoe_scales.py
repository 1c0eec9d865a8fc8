"""What paper `mvmoe` declares: its trainings as printed, and its tests as its tables ask."""

import pytest

from neuroute.evaluation.counts import counts
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.pipeline.papers.mvmoe.paper import ABLATIONS, TRAINED, VARIANTS, MvmoeScale, RoutingEvaluation
from neuroute.pipeline.plan.plan import Plan
from neuroute.specs.objects import BenchmarkEvaluation, ConstructionEvaluation, Supervised, Test
from plans import SCALES, plan_of, read_published, reinforced

METHODS = ("mtl", "moe4e", "moe4eL")  # those that solve several problems


@pytest.fixture(scope="module")
def paper() -> Plan:
    return plan_of("paper", ("mvmoe",))


# -- trainings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [50, 100])
@pytest.mark.parametrize("name", ["mtl", "moe4e", "moe4eL", "pomo_cvrp", "pomo_ovrptw"])
def test_the_training_is_the_papers(paper: Plan, name: str, size: int) -> None:
    """Section 5 and Appendix B.1: 5,000 epochs of 20,000 instances in batches of 128, the rate a tenth in the end."""
    run = paper.runs[f"mvmoe/{name}_{size}"]
    t = reinforced(run)
    (stage,) = t.stages
    assert (run.n, stage.sizes, stage.batch_size, stage.epochs) == (size, (size, size), 128, 5000)
    assert stage.batches_per_epoch == -(-20_000 // 128)
    assert (stage.learning_rate, stage.rate(4500), stage.rate(4501)) == pytest.approx((1e-4, 1e-4, 1e-5))
    assert (t.weight_decay, t.clip, t.fresh) == (1e-6, None, False)
    assert t.balance == (0.01 if name.startswith("moe") else 0)
    alone = name.removeprefix("pomo_").upper()
    assert stage.variants == ((alone,) if name.startswith("pomo") else TRAINED)
    logged = {labels.dataset.variant for labels in (run.validation, *run.also_validation)}
    assert logged >= set(stage.variants)
    assert {labels.dataset.split for labels in (run.validation, *run.also_validation)} == {"val"}


@pytest.mark.slow
def test_networks_have_the_published_parameters(paper: Plan) -> None:
    """Those of the published code, built so.  Files of the other runs fit them (test_given_weights)."""
    found = {
        run.name: counts(run.network).parameters
        for run in paper.runs.values()
        if run.network.kind.startswith("neuroute.networks.mvmoe")
    }
    wanted = {
        "pomo_ovrp_50": 1_254_144,
        "pomo_vrptw_100": 1_254_400,
        "h_raw": 1_258_168,
        "h_dec": 1_305_216,
        "h_enc_all": 3_631_616,
        "h_enc_even": 2_443_136,
        "h_enc_last2": 2_046_976,
        "h_node_ec": 3_682_176,
    }
    assert {name: found[name] for name in wanted} == wanted


def test_ablations_are_half_as_long_and_differ_in_one_thing(paper: Plan) -> None:
    runs = {run.name: run for run in paper.runs.values() if run.name.startswith("h_")}
    assert set(runs) == {name for names in ABLATIONS.values() for name in names.values()}
    default = runs["h_default"]
    for name, run in runs.items():
        t = reinforced(run)
        (stage,), (main,) = t.stages, reinforced(default).stages
        assert (stage.epochs, run.n, stage.variants) == (2500, 50, TRAINED)
        differ = {k for k in run.network.arguments.keys() | default.network.arguments.keys()
                  if run.network.arguments.get(k) != default.network.arguments.get(k)}  # fmt: skip
        if name in ("h_8e_100m", "h_16e_200m"):  # Section 5.2: 100M and 200M instances in batches of 256 and 512
            times = run.network.arguments["experts"] // 4
            assert stage.batch_size == 128 * times
            assert stage.batches == main.batches
        else:
            assert stage == main
        if name.startswith("h_alpha"):
            assert differ == set()
        elif name in ("h_inst_ec", "h_prob_random", "h_enc_ec"):
            assert len(differ) == 2
        else:
            assert len(differ) == (name != "h_default")
    alphas = {name: reinforced(run).balance for name, run in runs.items() if name.startswith("h_alpha")}
    assert alphas == {"h_alpha0001": 0.001, "h_alpha01": 0.1, "h_alpha1": 1.0}


def test_rows_of_table_5_say_what_is_trained(paper: Plan) -> None:
    assert list(ABLATIONS["table5"]) == list(dict.fromkeys(row["method_params"] for row in read_published("mvmoe", 5)))
    for row, name in ABLATIONS["table5"].items():
        said, run = dict(part.split("=") for part in row.split(";")), paper.runs[f"mvmoe/{name}"]
        arguments = {"norm": "instance"} | run.network.arguments
        assert reinforced(run).balance == float(said["alpha"])
        assert (arguments["norm"], arguments["top"]) == (said["norm"], int(said["K"]))
        assert reinforced(run).epochs == int(said["epochs"])


def test_few_shot_runs_begin_afresh_from_the_weights_of_50(paper: Plan) -> None:
    runs = {run.name: run for run in paper.runs.values() if run.start}
    assert set(runs) == {f"few_{m}_{v}" for m in METHODS for v in ("vrpbltw", "ovrpbltw")}
    for name, run in runs.items():
        _, method, variant = name.split("_")
        assert [(stage.name, stage.epochs) for stage in reinforced(run).stages] == [
            (f"epoch{i}", 1) for i in range(1, 11)
        ]
        assert run.start == f"mvmoe/{method}_50"
        assert run.network == paper.runs[run.start].network
        assert reinforced(run).fresh
        before = reinforced(paper.runs[run.start])
        assert reinforced(run).batches_before == before.batches  # no customers are seen again
        assert {stage.variants for stage in reinforced(run).stages} == {(variant.upper(),)}
        assert {stage.batches_per_epoch for stage in reinforced(run).stages} == {-(-10_000 // 128)}
        assert run.validation.dataset.variant == variant.upper()


def test_figure_7_compares_two_trainings_on_all_problems(paper: Plan) -> None:
    with_it, without = (paper.runs[run] for run in paper.artifacts["mvmoe/figure7"].runs)
    (stage,), (other) = reinforced(with_it).stages, reinforced(without).stages[0]
    assert set(stage.variants) - set(other.variants) == {"OVRPTW"}
    assert stage.model_copy(update={"variants": other.variants}) == other
    assert with_it.network == without.network
    for run in (with_it, without):
        assert [labels.dataset.variant for labels in (run.validation, *run.also_validation)] == list(VARIANTS)


def test_both_lehds_are_trained_alike(paper: Plan) -> None:
    """Table 8: as published, but for 20 epochs."""
    dense, light = (paper.runs[run] for run in mvmoe.lehd(paper.scale).values())
    assert (dense.id, light.id) == ("mvmoe/lehd_cvrp", "mvmoe/lehd4eL_cvrp")
    assert dense.training == light.training
    assert isinstance(dense.training, Supervised)
    assert dense.training.epochs == 20
    assert dense.data == light.data
    assert dense.network != light.network
    smoke = plan_of("smoke", ("mvmoe",))
    dense, light = (smoke.runs[run] for run in mvmoe.lehd(smoke.scale).values())
    assert dense.id == "scaling/lehd_cvrp"
    assert dense.training == light.training


# -- measurements -----------------------------------------------------------------------------------------------------


def cells(plan: Plan, evaluation: str) -> set[tuple[str | None, int]]:
    tests = plan.evaluations[evaluation].of_kind(Test)
    assert {t.decoding.name for t in tests} == {"multistart-x8"}
    assert {t.labels.dataset.problem for t in tests} == {"vrp"}
    return {(t.labels.dataset.variant, t.labels.dataset.n) for t in tests}


def test_models_are_tested_as_the_tables_ask(paper: Plan) -> None:
    for method in METHODS:
        for size in (50, 100):
            assert cells(paper, f"mvmoe/{method}_{size}/mvmoe") == {(v, size) for v in VARIANTS}
    assert cells(paper, "mvmoe/pomo_vrpb_50/mvmoe") == {("VRPB", 50)}
    assert cells(paper, "mvmoe/pomo_vrpb_100/mvmoe") == {(v, 100) for v in TRAINED}  # Table 4
    assert cells(paper, "mvmoe/h_k3/mvmoe") == {(v, 50) for v in VARIANTS}
    assert not {e for e in paper.evaluations if e.startswith("mvmoe/mtl_no")}
    few = paper.evaluations["mvmoe/few_moe4e_vrpbltw/stages"]  # Figure 5: the ends of all epochs but the last
    assert [test.stage for test in few.of_kind(Test)] == [f"epoch{i}" for i in range(1, 10)]
    assert cells(paper, "mvmoe/few_moe4e_vrpbltw/mvmoe") == {("VRPBLTW", 50)}


def test_benchmarks_are_solved_by_models_of_100(paper: Plan) -> None:
    found = {m.id: m for e in paper.evaluations.values() for m in e.of_kind(BenchmarkEvaluation)}
    multi = [f"mvmoe/{method}_100" for method in METHODS]
    assert {e.run for e in found.values() if e.benchmark == "solomon"} == {"mvmoe/pomo_vrptw_100", *multi}
    for group, nodes in (("set_x", (101, 252)), ("set_x_large", (502, 1002))):  # X-n101 to X-n251, X-n502 to X-n1001
        runs = ["mvmoe/pomo_cvrp_100", *multi]
        chosen = [found[f"{run}/{group}"] for run in runs]
        assert {(e.benchmark, e.sets, e.min_nodes, e.max_nodes) for e in chosen} == {("cvrplib", ("X",), *nodes)}
    for run in ("mvmoe/lehd_cvrp", "mvmoe/lehd4eL_cvrp"):
        assert [d.name for d in found[f"{run}/set_x_large"].decodings] == ["greedy", "rrc100"]


def test_one_job_measures_a_model_on_two_benchmarks() -> None:
    """At smoke a model's evaluations are one: its job waits for both, and its digest covers both."""
    plan = plan_of("smoke", ("mvmoe",))
    assert sorted(plan.benchmarks_of_evaluation("mvmoe/moe4e_50/all")) == ["cvrplib", "solomon"]
    assert plan.benchmarks_of_evaluation("mvmoe/pomo_cvrp_50/all") == ["cvrplib"]
    assert plan.benchmarks_of_evaluation("mvmoe/h_default/all") == []


def test_models_of_50_stand_in_for_those_of_100() -> None:
    plan = plan_of("smoke", ("mvmoe",))
    sizes = plan.scale[MvmoeScale].sizes
    assert not [run for run in plan.runs if run.endswith("_100")]
    tests = plan.evaluations["mvmoe/pomo_vrpb_50/all"].of_kind(Test)
    seen = {(t.labels.dataset.variant, t.labels.dataset.n) for t in tests}
    assert seen == {("VRPB", sizes[50]), *((variant, sizes[100]) for variant in TRAINED)}


def test_gates_and_seconds_are_of_all_problems(paper: Plan) -> None:
    for run in ("mvmoe/moe4e_50", "mvmoe/moe4eL_50"):
        (routing,) = paper.evaluations[f"{run}/routing"].of_kind(RoutingEvaluation)
        assert [d.variant for d in routing.datasets] == list(VARIANTS)
        assert routing.steps == 20
    for method in METHODS:
        (construction,) = paper.evaluations[f"mvmoe/{method}_100/construction"].of_kind(ConstructionEvaluation)
        assert {(d.variant, d.n) for d in construction.datasets} == {(v, 1000) for v in VARIANTS}
        assert construction.decoding.name == "multistart"


def test_the_reference_solver_comes_first(paper: Plan) -> None:
    for variant, solvers in {
        "CVRP": ["hgs-long", "lkh3", "ortools", "ortools-x10"],
        "VRPTW": ["pyvrp-long", "lkh3", "ortools", "ortools-x10"],
        "OVRP": ["lkh3", "ortools", "ortools-x10"],
        "OVRPBLTW": ["ortools-x10", "ortools"],
    }.items():
        found = mvmoe.solved(paper.scale, variant, 100)
        assert [labels.solver for labels in found] == solvers
        assert found[0] == mvmoe.reference(paper.scale, variant, 100)
        assert {labels.id for labels in found} <= paper.label_jobs.keys()
    assert mvmoe.reference(paper.scale, "OVRP", 50).solver == "ortools-x10"  # the best mean in print, as at 100 LKH3's


@pytest.mark.parametrize("scale", SCALES)
def test_nothing_is_trained_or_measured_in_vain(scale: str) -> None:
    plan = plan_of(scale, ("mvmoe",))
    read = {e for a in plan.artifacts.values() for e in a.evaluations}
    assert read == set(plan.evaluations)
    shown = {*(plan.evaluations[e].run for e in read), *(r for a in plan.artifacts.values() for r in a.runs)}
    assert shown == set(plan.runs)
