"""Config and scales: what is accepted, and the one line that says what is wrong."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from neuroute.core.errors import NeurouteError
from neuroute.papers.pens.scale import PensScale
from neuroute.plan.build import build_plan
from neuroute.plan.config import Config, load_scale, parse_config
from neuroute.plan.papers import paper_folders
from neuroute.plan.schemas import schemas
from own_scale import ROOT, refused, smoke_with

SCALES = sorted(p.stem for p in (ROOT / "workflow" / "scales").glob("*.yaml"))


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_gives_a_plan(scale: str) -> None:
    plan = build_plan(Config(scale=scale))
    own = {run.removesuffix(f"-s{plan.runs[run].seed}") for run in plan.runs if run.startswith("scaling/")}
    assert len(own) == 26  # the paper's 23 (with LEHD), BQ and SIGD, and LEHD for the CVRP
    assert len([run for run in plan.runs if run.startswith("pens/")]) == 8
    assert {a.id for a in plan.artifacts.values()} == {
        *(f"scaling/table{i}" for i in range(1, 21)),
        *(f"scaling/figure{i}" for i in range(1, 13)),
        *(f"pens/table{i}" for i in range(1, 5)),
        *(f"pens/table_figure{i}" for i in (4, 5)),
        *(f"pens/figure{i}" for i in range(1, 7)),
        *(f"sit/table{i}" for i in range(1, 12)),
        *(f"sit/figure{i}" for i in range(1, 4)),
        *(f"icam/table{i}" for i in range(1, 13)),
        *(f"icam/figure{i}" for i in range(1, 7)),
        *(f"mvmoe/table{i}" for i in range(1, 9)),
        *(f"mvmoe/figure{i}" for i in range(1, 10)),
    }
    for evaluation in plan.evaluations.values():
        assert bool(plan.label_jobs_of_evaluation(evaluation.id)) == bool(evaluation.labels)
    for run in plan.runs:
        assert plan.label_jobs_of_run(run)
    for artifact in plan.artifacts.values():
        assert set(artifact.evaluations) <= set(plan.evaluations)
        assert set(artifact.runs) <= set(plan.runs)


def test_paper_scale_is_the_papers() -> None:
    """scaling, Tables 1 and 9, Section 3."""
    plan = build_plan(Config(scale="paper"))
    run = plan.runs["scaling/base_42x512"]
    assert run.network.arguments == {
        "depth": 42,
        "width": 512,
        "heads": 16,
        "gate": True,
        "rezero": True,
        "train_nodes": 100,
    }
    t = run.training
    assert (t.batches, t.batch_size, t.epochs) == (60_000, 1024, 1)
    assert (t.learning_rate, t.weight_decay, t.decay_gamma, t.decay_every) == (1.25e-4, 0.01, 0.997, 100)
    assert t.step == "sub-path"
    assert {t.labels.dataset.count for t in plan.evaluations["scaling/base_6x128/greedy"].tests} == {10_000}
    few = plan.runs["scaling/small01M_42x128"].training  # Table 3
    assert (few.samples, few.epochs, few.batch_size, few.learning_rate) == (100_000, 60, 1024, 1.25e-4)
    without = plan.runs["scaling/norezero_42x128"]  # Appendix B.5
    assert not without.network.arguments["rezero"]
    assert (without.training.warmup_batches, without.training.warmup_factor) == (50, 0.1)
    rrc = plan.evaluations["scaling/base_42x512/rrc"].tests  # Table 19
    assert [(t.labels.dataset.n, t.labels.dataset.count) for t in rrc] == [(100, 1000), (1000, 16)]
    assert rrc[0].decoding.milestones == (0, 100, 200, 500, 800, 1000)
    shifted = plan.evaluations["scaling/base_6x128/shifted"].tests  # Tables 14-16
    assert {(t.labels.dataset.distribution, t.labels.dataset.n) for t in shifted} == {
        (d, n) for d in ("explosion", "implosion", "cluster") for n in (100, 200, 500, 1000)
    }


def test_paper_scale_is_the_papers_for_pens() -> None:
    """pens, Section 5.1: nine layers of width 192, a million batches of 1,024, 1e-4 to 1e-5, five repeats."""
    plan = build_plan(Config(scale="paper"))
    run = plan.runs["pens/pens_a"]
    shape = {"depth": 9, "width": 192, "heads": 12, "feed_forward": 512, "train_nodes": 100}
    assert run.network.arguments == shape | {"positions": "alibi"}
    t = run.training
    assert (t.batches, t.batch_size, t.learning_rate, t.final_learning_rate) == (1_000_000, 1024, 1e-4, 1e-5)
    assert (t.sub_paths, t.step, t.scheme) == ("pairs", "decision", "path-tsp")
    assert plan.scale[PensScale].repeats == 5
    assert {size: plan.scale[PensScale].test_counts[size] for size in (100, 250, 500, 1000, 10_000)} == {
        100: 128, 250: 128, 500: 128, 1000: 128, 10_000: 10
    }  # fmt: skip
    assert plan.scale[PensScale].sizes == {n: n for n in (20, 50, 100, 250, 500, 1000, 10_000)}


def test_baselines_at_paper_scale_are_the_published_recipes() -> None:
    """LEHD: 150 epochs of 1M samples, Adam 1e-4, times 0.97 an epoch.  BQ-NCO: its training script's defaults."""
    runs = build_plan(Config(scale="paper")).runs
    lehd, bq = runs["scaling/lehd_6x128"].training, runs["scaling/bq"].training
    assert (lehd.samples, lehd.epochs, lehd.batch_size, lehd.learning_rate) == (1_000_000, 150, 1024, 1e-4)
    assert (lehd.decay_gamma, lehd.decay_every, lehd.weight_decay) == (0.97, lehd.batches_per_epoch, 0)
    assert (bq.step, bq.sub_paths, bq.keep) == ("decision", "suffix", "best")
    assert bq.decay_every == 50 * bq.batches_per_epoch
    assert runs["scaling/sigd"].data == ()


def test_a_scale_may_measure_all_of_a_model_in_one_job() -> None:
    apart, together = build_plan(Config(scale="laptop")), build_plan(Config(scale="smoke"))
    assert "scaling/base_6x128/greedy" in apart.evaluations
    assert "scaling/base_6x128/all" in together.evaluations
    tests = [t for part in together.evaluations["scaling/base_6x128/all"].members() for t in getattr(part, "tests", ())]
    assert len(tests) == len(set(tests)) > 20
    assert "scaling/base_6x128/all" in together.artifacts["scaling/table12"].evaluations


def test_schemas_are_in_step_with_the_models() -> None:
    for name, values in schemas().items():
        written = json.loads((ROOT / "workflow" / "schemas" / f"{name}.schema.json").read_text())
        assert written == values, "run `neuroute schema`"


def test_text_values_from_the_command_line_are_coerced() -> None:
    config = parse_config({"memory_gb": "8", "runs": {"scaling/base_6x128": {"training": {"learning_rate": "1e-3"}}}})
    assert config.memory_gb == 8.0
    assert config.runs["scaling/base_6x128"].training.learning_rate == 1e-3


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scael": "smoke"}, "scael: unknown key"),
        ({"memory_gb": "lots"}, "memory_gb: .*number"),
        ({"memory_gb": -1}, "memory_gb"),
        ({"device": "tpu"}, "device: .*'auto', 'cpu' or 'cuda'"),
        ({"papers": ["scalling"]}, "papers: no paper 'scalling'; known papers: .*scaling"),
        ({"papers_path": ["nowhere"]}, "papers_path: no folder nowhere"),
        ({"papers": []}, "papers"),
        ({"runs": {"scaling/base_6x128": {"training": {"lr": 1}}}}, "training.lr: unknown key"),
        ({"runs": {"scaling/base_6x128": {"training": {"learning_rate": -1}}}}, "training.learning_rate"),
    ],
)
def test_bad_config_is_one_clear_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(NeurouteError, match=message) as error:
        parse_config(values)
    assert "\n" not in str(error.value)


def test_unknown_scale_and_run_name_the_nearest() -> None:
    with pytest.raises(NeurouteError, match="known scales: .*smoke"):
        load_scale("smok")
    with pytest.raises(NeurouteError, match="did you mean .*scaling/base_6x128"):
        build_plan(parse_config({"runs": {"scaling/base_6x129": {"seed": 1}}}))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("scaling", "sizes", 100), 3, "scaling.sizes.100.*greater than or equal to 4"),
        (("scaling", "beams", 2), 0, "scaling.beams.2.*greater than or equal to 1"),
        (("scaling", "widths", 128), {"width": 30, "heads": 4}, "width 30 is not divisible by 4 heads"),
        (("scaling", "depths"), {6: 6}, "depths must name exactly the paper's"),
        (("scaling", "training", "step"), "leap", "scaling.training.step"),
        (("scaling", "training", "samples"), "many", "scaling.training.samples.*integer"),
    ],
)
def test_impossible_scales_are_refused(tmp_path: Path, path: tuple[Any, ...], value: Any, message: str) -> None:
    paper, *place = path
    refused(tmp_path, smoke_with(paper, tuple(place), value), message)


def test_a_change_that_does_not_fit_a_run_is_said() -> None:
    """SIGD has no labelled samples: a number of them is refused before anything runs."""
    with pytest.raises(NeurouteError, match="runs.scaling/sigd.training: samples: unknown key"):
        build_plan(parse_config({"runs": {"scaling/sigd": {"training": {"samples": 5}}}}))


def test_a_change_of_a_run_holds_for_all_its_seeds() -> None:
    change = {"scale": "laptop", "runs": {"scaling/base_6x128": {"training": {"learning_rate": 2e-4}}}}
    plan = build_plan(parse_config(change))
    for name in ("base_6x128", "base_6x128-s1", "base_6x128-s2"):
        assert plan.runs[f"scaling/{name}"].training.learning_rate == 2e-4
    with pytest.raises(NeurouteError, match="hold for all seeds"):
        build_plan(parse_config(change | {"runs": {"scaling/base_6x128-s1": {"seed": 5}}}))
    with pytest.raises(NeurouteError, match="several seeds"):
        build_plan(parse_config(change | {"runs": {"scaling/base_6x128": {"seed": 5}}}))


def test_more_cvrp_samples_are_labelled_where_a_change_asks_for_them() -> None:
    plan = build_plan(parse_config({"runs": {"scaling/lehd_cvrp": {"training": {"samples": 4000}}}}))
    assert plan.label_jobs_of_run("scaling/lehd_cvrp") == ["scaling/cvrp"]
    assert plan.label_jobs["scaling/cvrp"].labels[0].dataset.count == 4000


def test_code_digests_keep_stages_and_networks_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Supervised training hangs neither on searches nor on SIGD; an evaluation only on its own network's FLOPs."""
    from neuroute.plan import digest

    plan = build_plan(Config(scale="smoke"))
    reached: list[str] = []
    places: set[tuple[str, str]] = set()
    code_digest = digest.code_digest

    def noted(*entries: str) -> str:
        places.update(digest.reach(entries))
        reached.extend(module for module, _ in digest.reach(entries))
        return code_digest(*entries)

    monkeypatch.setattr("neuroute.plan.plan.code_digest", noted)
    plan.train_code("scaling/base_6x128")
    assert "neuroute.training.supervised" in reached
    apart = ("decoding.beam", "decoding.prc", "decoding.sampling", "training.self_improvement", "training.cvrp")
    for other in (*apart, "training.reconstruction"):
        assert f"neuroute.{other}" not in reached
    plan.train_code("scaling/sigd")
    assert "neuroute.decoding.sampling" in reached
    reached.clear()
    plan.evaluate_code("scaling/base_6x128/all")
    assert "neuroute.decoding.beam" in reached
    assert ("neuroute.accounting.counts", "DecoderOnly") in places
    assert ("neuroute.accounting.counts", "Lehd") not in places


def test_a_plan_imports_no_library_that_draws_or_trains() -> None:
    """Every job builds one: pandas, matplotlib, scipy and torch would take longer than the plan."""
    code = (
        "import sys; from neuroute.plan.build import build_plan; from neuroute.plan.config import Config; "
        "build_plan(Config(scale='smoke')); "
        "print([m for m in ('pandas', 'matplotlib', 'scipy', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_papers_are_named_in_their_folders_alone() -> None:
    """Everything else takes them as they come; a paper imports no other one."""
    source, keys = ROOT / "src" / "neuroute", "|".join(paper_folders())
    for file in source.rglob("*.py"):
        inside = file.relative_to(source).parts
        own = inside[1] if inside[0] == "papers" and len(inside) > 2 else None
        imported = set(re.findall(rf"neuroute\.papers\.({keys})\b", file.read_text()))
        assert imported <= {own}, file
