"""The plan of every scale: what its parts need is there, nothing is made twice or in vain, and jobs stay few."""

from pathlib import Path

import pytest
from refusals import one_line

from neuroute.core import digest
from neuroute.pipeline.plan.overview import costs
from neuroute.pipeline.plan.plan import COUNTING
from plans import PAPERS, ROOT, SCALES, plan_of

ARTIFACTS = {  # of each paper: tables, figures, and figures with a table
    "scaling": (20, 12, (3,)),
    "pens": (4, 6, (4, 5)),
    "sit": (11, 3, ()),
    "icam": (12, 6, ()),
    "mvmoe": (8, 9, (5, 6)),
}
OF_RATES = {"scaling/table22"}  # our own: a scale that does not train what it shows is without it


def test_scales_are_those_of_the_folder() -> None:
    assert {path.stem for path in (ROOT / "workflow" / "scales").glob("*.yaml")} == {*SCALES, "hour", "zoo"}


def test_hour_makes_the_headline_alone_in_an_hour_on_two_cores(tmp_path: Path) -> None:
    plan = plan_of("hour", ("scaling",), work_dir=str(tmp_path))
    assert {a.name for a in plan.artifacts.values()} == {
        *("table1", "table2", "table12", "table_figure3"),
        *("figure1", "figure2", "figure3"),
    }
    assert sum(job.cpu_hours for job in costs(plan, None)) <= 2.0
    with one_line("scale hour does not train its models; scales that do: .*laptop"):
        plan.artifact("scaling/table13")


def test_the_jobs_of_a_table_hold_the_measurements_that_others_read(tmp_path: Path) -> None:
    """PENS is measured at the best factor of a sweep, an evaluation of its own."""
    plan = plan_of("laptop", ("pens",), work_dir=str(tmp_path))
    jobs = {job.id for job in costs(plan, "pens/table1")}
    reading = {job for job in jobs if job in plan.evaluations and plan.evaluations[job].reads_best_factor()}
    assert "pens/pens_a/rescaled" in reading
    assert {f"{plan.evaluations[job].run}/rescaling" for job in reading} <= jobs
    assert reading.isdisjoint(job.id for job in costs(plan, "pens/table_figure4"))


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_all_runs_and_what_they_show(scale: str) -> None:
    plan = plan_of(scale)
    first = {run.removesuffix(f"-s{plan.runs[run].seed}") for run in plan.runs}
    own = {run for run in first if run.startswith("scaling/")}
    rates = {run for run in own if run.startswith(("scaling/part", "scaling/pilot", "scaling/single"))}
    compares_rates = scale in ("laptop", "gpu")
    assert bool(rates) == compares_rates
    in_grid = compares_rates  # a model of Table 2 that the grid has there
    # The paper's 23 (with LEHD), BQ and SIGD, and LEHD for the CVRP.
    assert len(own - rates) == 26 - in_grid
    assert len([run for run in first if run.startswith("pens/")]) == 8
    assert {a.id for a in plan.artifacts.values()} == {
        f"{paper}/{kind}{i}"
        for paper, (tables, figures, printed) in ARTIFACTS.items()
        for kind, numbers in {
            "table": range(1, tables + 1),
            "figure": range(1, figures + 1),
            "table_figure": printed,
        }.items()
        for i in numbers
    } | (OF_RATES if compares_rates else set())


@pytest.mark.slow
@pytest.mark.parametrize("papers", [*((paper,) for paper in PAPERS), ("pens", "scaling"), PAPERS, PAPERS[::-1]])
@pytest.mark.parametrize("scale", SCALES)
def test_all_that_is_needed_is_there_whatever_the_papers(papers: tuple[str, ...], scale: str) -> None:
    plan = plan_of(scale, papers)
    for run in plan.runs:
        assert set(plan.label_jobs_of_run(run)) <= set(plan.label_jobs)
    for evaluation in plan.evaluations.values():
        assert set(plan.label_jobs_of_evaluation(evaluation.id)) <= set(plan.label_jobs)
    for artifact in plan.artifacts.values():
        assert set(artifact.evaluations) <= set(plan.evaluations)
        assert set(artifact.runs) <= set(plan.runs)
        assert set(artifact.label_jobs) <= set(plan.label_jobs)


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a digest of code be the names of what it is of."""
    monkeypatch.setattr("neuroute.pipeline.plan.plan.code_digest", lambda *entries: "".join(f"{e} " for e in entries))


def reached(code: str) -> set[str]:
    """What such a digest hangs on, as "networks.lehd:Lehd"."""
    entries = [name for name in code.split() if ":" in name]
    return {f"{module.removeprefix('neuroute.')}:{name}" for module, name in digest.reach(entries)}


@pytest.mark.usefixtures("named")
def test_code_digests_keep_stages_and_networks_apart() -> None:
    """Supervised training hangs neither on searches nor on SIGD; an evaluation only on its own network's FLOPs."""
    plan = plan_of()
    apart = ("decoding.sampling:", "decoding.tsp:prc", "training.self_improvement:", "training.cvrp:")
    supervised, *others = (
        reached(plan.train_code(run)) for run in ("scaling/base_6x128", "scaling/sigd", "sit/tsp_1k", "sit/cvrp_1k")
    )
    assert "training.supervised:SupervisedBatches" in supervised
    assert not [name for name in supervised if name.startswith(apart)]
    assert all(any(name.startswith(part) for name in set().union(*others)) for part in apart)
    assert "decoding.sampling:sample_shortest" in others[0]
    measured = reached(plan.evaluate_code("scaling/base_6x128/all"))
    assert {"networks.decoder_only:DecoderOnly", "decoding.sampling:search_beams"} <= measured
    assert "networks.lehd:Lehd" not in measured


@pytest.mark.usefixtures("named")
def test_every_drawing_hangs_on_how_records_are_read() -> None:
    """A study is given to a drawing, which names it in annotations alone."""
    plan = plan_of()
    assert [a for a in plan.artifacts if "rendering.study:Study" not in plan.render_code(a)] == []
    for counted, network in (("scaling/table1", "DecoderOnly"), ("icam/table4", "Icam")):  # while they are drawn
        assert f":{network} " in plan.render_code(counted)
        assert COUNTING in plan.render_code(counted)


@pytest.mark.usefixtures("named")
def test_a_training_hangs_on_the_decision_that_it_learns() -> None:
    """And on none where it learns whole solutions, or adds up gradients itself."""
    smoke = plan_of("smoke", (*PAPERS, "rivals"))
    hangs = {run.training.kind: "Decision" in smoke.train_code(run.id) for run in smoke.runs.values()}
    assert {kind for kind, on_decision in hangs.items() if on_decision} == {
        "supervised", "self-improvement", "reconstruction",
    }  # fmt: skip
    assert {"reinforce", "neuroute_systems.glop.system:Revising"} <= {*hangs}
