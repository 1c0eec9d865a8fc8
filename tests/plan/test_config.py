"""Config: what is accepted, and the one line that says what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import one_line

from neuroute.core.yaml_files import read_yaml
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import check_folders, load_config, parse_config, schemas
from plans import ROOT


def test_schemas_are_in_step_with_the_models() -> None:
    for name, values in schemas().items():
        written = json.loads((ROOT / "workflow" / "schemas" / f"{name}.schema.json").read_text())
        assert written == values, "run `neuroute schema`"


def test_text_values_from_the_command_line_are_coerced() -> None:
    config = parse_config({"memory_gb": "8", "runs": {"scaling/base_6x128": {"training": {"learning_rate": "1e-3"}}}})
    assert config.memory_gb == 8.0
    assert config.runs["scaling/base_6x128"].training.learning_rate == 1e-3
    assert parse_config({"tf32": False, "compile": True}).compile


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scael": "smoke"}, "scael: unknown key"),
        ({"memory_gb": -1}, "memory_gb"),
        ({"device": "tpu"}, "device: .*'auto', 'cpu' or 'cuda'"),
        ({"papers": ["scalling"]}, r"papers: no paper 'scalling'; did you mean scaling\? known papers: .*scaling"),
        ({"papers_path": ["nowhere"]}, "papers_path: no folder nowhere"),
        (
            {"sweep": {"run": "scaling/base_6x128", "grid": {"weights": ["a.pt", "b.pt"]}}},
            "^mine.yaml: sweep.grid.*weights are no key of the grid",
        ),
        ({"papers": ["sweep"]}, "^mine.yaml: papers: sweep: nothing to sweep; add a block `sweep`"),
        ({"results_dir": "."}, "results_dir: is the working folder itself"),
        ({"work_dir": "results/../results"}, "work_dir and results_dir are one folder"),
        ({"runs": {"scaling/base_6x129": {"seed": 1}}}, "did you mean .*scaling/base_6x128"),
        (
            {"runs": {"scaling/base_6x128": {"training": {"lr": 1e-4}}}},
            "^mine.yaml: runs.scaling/base_6x128.training.lr: unknown key; did you mean learning_rate?",
        ),
        ({"runs": {"pens/pens_a": {"network": "no_module:Net"}}}, "^mine.yaml: runs.pens/pens_a.network: "),
        ({"runs": {"pens/pens_a": {"training": {"sub_paths": "suffix"}}}}, "^mine.yaml: .*training.sub_paths"),
        ({"test_sets": "published"}, "^mine.yaml: test_sets: no folder; name it in testsets_dir"),
        ({"scale": "smok"}, "known scales: .*smoke"),
        ({"papers": ["scaling"], "scale": "zoo"}, "no block 'scaling', which mine.yaml asks for"),
        ({"papers": ["rivals"], "scale": "gpu"}, "^mine.yaml: papers: scale gpu has nothing of rivals; take another"),
        ({"runs": {"scaling/bq": {"seed": True}}}, r"^mine\.yaml: runs.*: true, where a number is needed"),
        ({"compare": {"groups": [100, False]}}, r"^mine\.yaml: compare.*: false, where a number is needed"),
        ({"memory_gb": True}, r"^mine\.yaml: memory_gb.*: true, where a number is needed"),
    ],
)
def test_bad_config_is_one_clear_line(values: dict[str, Any], message: str) -> None:
    with one_line(message):
        build_plan(parse_config(values, "mine.yaml"))


@pytest.mark.parametrize("key", ["label_caches", "benchmarks_dir", "testsets_dir"])
def test_a_folder_that_is_not_there_is_refused_by_every_command(key: str, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    file = tmp_path / "mine.yaml"
    file.write_text(json.dumps({key: [str(nowhere)] if key == "label_caches" else str(nowhere)}))
    with one_line(f"mine.yaml: {key}: no folder {nowhere}; correct the path or leave it out"):
        load_config(file)


LATIN = "scale: smoke  # für die Übung\n"


@pytest.mark.parametrize(
    ("text", "words", "right", "value"),
    [
        (
            b"scale: smoke\nruns: {scaling/bq: {seeds: 2}}\nruns:\n  scaling/sigd: {seeds: 2}\n",
            "line 3: key 'runs' comes twice; merge",  # as the first would be lost
            b"a: &a {x: 1, y: {z: 1}}\nb: {<<: *a, x: 2}\nc: [*a, {x: 3}]\n",  # an override is none
            {"a": {"x": 1, "y": {"z": 1}}, "b": {"x": 2, "y": {"z": 1}}, "c": [{"x": 1, "y": {"z": 1}}, {"x": 3}]},
        ),
        (LATIN.encode("latin-1"), "not valid YAML: .*UTF-8", LATIN.encode("utf-8-sig"), {"scale": "smoke"}),
        *(
            (
                f"scale: smoke\nruns: {{scaling/bq: {{training: {{batch_size: {number}}}}}}}\n".encode(),
                f"not valid YAML: line 2: {number} is another number to YAML",
                f"a: '{number}'  # {number}\nb: x{number}\n".encode(),
                {"a": number, "b": f"x{number}"},
            )
            for number in ("010", "-017", "1:30", "1:30:15", "1:30.5")
        ),
    ],
)
def test_a_file_that_yaml_reads_as_another_than_was_meant_is_refused(
    text: bytes, words: str, right: bytes, value: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(text)
    with one_line(rf"config\.yaml: .*{words}"):
        read_yaml(path)
    path.write_bytes(right)
    assert read_yaml(path) == value


def test_exponents_are_numbers_with_and_without_a_point() -> None:
    """Snakemake, whose YAML is of 1.1, hands on 1e2 as text."""
    for value in ("1e2", "1E+2", "1.0e2", 100.0):
        config = parse_config({"runs": {"scaling/bq": {"training": {"batch_size": value}}}})
        assert config.runs["scaling/bq"].training.batch_size == 100  # type: ignore[attr-defined]


@pytest.mark.parametrize("key", ["work_dir", "results_dir"])
def test_a_folder_that_cannot_be_written_stops_snakemake_before_its_first_job(tmp_path: Path, key: str) -> None:
    (tmp_path / "file").write_text("")
    folders = {"work_dir": str(tmp_path / "work"), "results_dir": str(tmp_path / "results")}
    check_folders(parse_config({"papers": ["pens"], **folders}))
    folders[key] = str(tmp_path / "file" / "below")
    with one_line(r"file/below.*: cannot write here \(.*\); check the folder's rights$"):
        check_folders(parse_config({"papers": ["pens"], **folders}))
    folders[key] = str(tmp_path / "my own")
    with one_line(rf"^config.yaml: {key}: '.*/my own' contains ' '"):
        check_folders(parse_config({"papers": ["pens"], **folders}))
    assert not (tmp_path / "my own").exists()


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    config = parse_config({"work_dir": "~/work", "testsets_dir": "~/sets", "label_caches": ["~", "a~"]})
    assert (config.work_dir, config.testsets_dir) == ("/home/someone/work", "/home/someone/sets")
    assert config.label_caches == ["/home/someone", "a~"]


def test_keys_are_changed_on_the_command_line_as_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("scale: smoke\nruns: {scaling/bq: {seed: 3}}\n")
    changes = ["runs.scaling/bq.training.learning_rate=2e-4", "runs.scaling/base_6x128.seeds=2", "loggers=[csv]"]
    config = load_config(file, [*changes, "scale_changes.scaling.depths.6=7", "device=cpu", "memory_gb=null"])
    assert config.runs["scaling/bq"].seed == 3
    assert config.runs["scaling/bq"].training.learning_rate == 2e-4  # type: ignore[attr-defined]
    assert config.runs["scaling/base_6x128"].seeds == 2
    assert config.scale_changes == {"scaling": {"depths": {6: 7}}}
    assert (config.loggers, config.device, config.memory_gb) == (["csv"], "cpu", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("runs.scaling/bq.training.learning_rat=1", "did you mean learning_rate"),
        ("runs.scaling/bq.seed=none", "runs.scaling/bq.seed"),
        ("device", "--set device: write key=value"),
        ("device.name=cpu", "device is cpu, not a mapping; give it keys"),
    ],
)
def test_a_change_that_cannot_be_is_one_line(change: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("device: cpu\n")
    with one_line(message):
        load_config(tmp_path / "config.yaml", [change])
