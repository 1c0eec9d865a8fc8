"""Config and scales: what is accepted, and the one line that says what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from neuroute.errors import NeurouteError
from neuroute.plan.build import build_plan
from neuroute.plan.config import Config, Scale, load_scale, parse_config

ROOT = Path(__file__).resolve().parents[2]
SCALES = sorted(p.stem for p in (ROOT / "workflow" / "scales").glob("*.yaml"))


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_gives_a_plan(scale: str) -> None:
    plan = build_plan(Config(scale=scale))
    assert len(plan.runs) == 14
    for evaluation in plan.evaluations:
        assert plan.bundles_of_evaluation(evaluation)
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


def test_schemas_are_in_step_with_the_models() -> None:
    for model, name in ((Config, "config"), (Scale, "scale")):
        written = json.loads((ROOT / "workflow" / "schemas" / f"{name}.schema.json").read_text())
        assert written == model.model_json_schema(), "run `neuroute schema`"


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
        ({"papers": ["scalling"]}, "papers.0"),
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
    values = yaml.safe_load((ROOT / "workflow" / "scales" / "smoke.yaml").read_text())
    inner = values
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    (tmp_path / "odd.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(NeurouteError, match=message):
        load_scale(str(tmp_path / "odd.yaml"))
