"""A table is remade from its models' weights, or from labels on, and what differs is said: `neuroute verify`."""

import json
import re
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

import checkout
from checkout import TOY, neuroute, snakemake_in
from neuroute.networks.weights import KEY, read_about

pytestmark = [pytest.mark.dag, pytest.mark.slow]
TABLE = "results/toy/table1.csv"
CONFIG = ("--config", "docs/examples/config.yaml")


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the toy paper, and what was kept of it."""
    folder = tmp_path_factory.mktemp("verify")
    checkout.toy(folder)("all", *TOY)
    neuroute(folder, "keep", "kept", "--commit", "abc1234", *CONFIG)
    return folder


def verify(folder: Path, file: str, *options: str) -> tuple[int, list[str]]:
    """Exit status and lines, but for the first, which names commits."""
    done = neuroute(folder, "verify", file, *options, "--cores", "2", *CONFIG, check=False)
    assert done.returncode < 2, done.stdout + done.stderr
    assert not list((folder / "work" / "verify").glob("*"))
    return done.returncode, done.stdout.splitlines()[1:]


def test_what_stands_there_is_measured_again_and_equal(toy: Path) -> None:
    measured = (toy / "work" / "toy" / "evaluations").rglob("all.*")
    before = {file: file.read_bytes() for file in measured}
    assert verify(toy, TABLE) == (0, [f"{TABLE}: equal"])
    assert before == {file: file.read_bytes() for file in before}


def test_keep_names_what_was_not_drawn(toy: Path, tmp_path: Path) -> None:
    results = shutil.copytree(toy / "results", tmp_path / "results")
    for file in (results / "toy").glob("table1.*"):
        file.unlink()
    settings = (toy / "docs/examples/config.yaml").read_text().replace("docs/examples", f"{toy}/docs/examples")
    (tmp_path / "config.yaml").write_text(f"{settings}results_dir: {results}\nwork_dir: {toy / 'work'}\n")
    said = "not drawn at scale toy, so not kept: toy/table1"
    for folder, end in ((tmp_path / "new", "\n"), (toy / "kept", "; older files stay: toy/table1\n")):
        done = neuroute(toy, "keep", str(folder), "--commit", "abc1234", "--config", str(tmp_path / "config.yaml"))
        assert f"{said}{end}" in done.stderr


@pytest.mark.parametrize(
    ("mistake", "says"),
    [("    1 / 0\n", "ZeroDivisionError: division by zero"), ("    raise SystemExit\n", "SystemExit: ")],
)
def test_a_drawing_that_fails_is_one_line_with_file_and_line(
    toy: Path, mistake: str, says: str, tmp_path: Path
) -> None:
    here = shutil.copytree(toy, tmp_path / "here", symlinks=True)
    file, head = here / "docs/examples/papers/toy/figures.py", "-> Drawing:\n"
    text = file.read_text()
    line = text[: text.index(head)].count("\n") + 2
    file.write_text(text.replace(head, head + mistake))
    done = snakemake_in(here)("results/toy/figure1.pdf", *TOY, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 1
    where = rf"1 job failed:\nrender_figure toy/figure1: error: \S*figures.py, line {line}: "
    assert re.search(where + says, said), said
    assert "Traceback" not in said


def test_another_number_is_named_with_its_distance(toy: Path) -> None:
    kept = toy / "kept" / "toy" / "table1.csv"
    text = kept.read_text()
    gap = re.search(r"Decoder,[^\n]*?,([\d.]+)", text.replace('"D=2, W=32"', "it"))
    assert gap
    kept.write_text(text.replace(gap[1], str(1.01 * float(gap[1]))))
    status, lines = verify(toy, "kept/toy/table1.csv", "--cell", "Decoder,gap_tsp8_pct")
    assert status == 1
    assert len(lines) == 1
    assert lines[0].startswith("Decoder, D=2, W=32: gap_tsp8_pct_measured: ")
    assert lines[0].endswith(" now (-0.99 %)")
    kept.write_text(text)


def test_a_kept_table_is_measured_again_by_kept_weights(toy: Path) -> None:
    """Nothing of the work folder is left; the weights were kept under an older code of their network."""
    shutil.copytree(toy / "kept", toy / "measured" / "toy")
    kept = toy / "measured/runs/toy/toy/decoder/model.safetensors"
    kept.parent.mkdir(parents=True)
    work = (toy / "work").rename(toy / "aside")
    trained = work / "toy/runs/toy/decoder/model.safetensors"
    tensors, about = load_file(trained), read_about(trained)
    command = ("measured/toy/toy/table1.csv", "--cell", "Decoder,gap_tsp8_pct")
    try:
        for code, change, status, words in (
            ("0" * 16, 0.0, 0, "measured/toy/toy/table1.csv: equal, Decoder,gap_tsp8_pct"),
            (about["code"], 0.5, 1, "Decoder, D=2, W=32: gap_tsp8_pct_measured: "),
        ):
            changed = {name: tensor + change for name, tensor in tensors.items()}
            save_file(changed, kept, metadata={KEY: json.dumps(about | {"code": code})})
            ended, lines = verify(toy, *command)
            assert (ended, lines[0]) == (status, "by weights that were kept: toy/decoder")
            assert lines[1].startswith(words)
        about["spec"]["training"]["learning_rate"] = 1.0  # of another training, though of the same run
        save_file(tensors, kept, metadata={KEY: json.dumps(about)})
        done = neuroute(toy, "verify", *command, *CONFIG, check=False)
        assert done.returncode == 2
        assert "weights of toy/decoder are missing" in done.stderr
    finally:
        shutil.rmtree(toy / "work", ignore_errors=True)
        work.rename(toy / "work")


def test_other_weights_and_other_values_are_named(toy: Path) -> None:
    """Of a figure and a table, trained again; the table's .json is made to state others."""
    assert verify(toy, "results/toy/figure1.csv", "--from", "labels") == (0, ["results/toy/figure1.csv: equal"])
    stated = (toy / TABLE).with_suffix(".json")
    text = stated.read_text()
    about = json.loads(text)
    about["made_from"]["runs"]["toy/decoder"]["weights_sha256"] = "0" * 64
    about["made_from"]["evaluations"]["toy/decoder/all"]["values_sha256"] = "1" * 64
    stated.write_text(json.dumps(about))
    status, lines = verify(toy, TABLE, "--from", "labels")
    assert status == 1
    assert [line[:45] for line in lines] == [
        "toy/decoder: other weights (sha256 00000000 b",
        "toy/decoder/all: other values (sha256 1111111",
    ]
    stated.write_text(text)


def test_what_cannot_be_remade_is_said_before_anything_runs(toy: Path) -> None:
    weights = toy / "work/toy/runs/toy/decoder/model.safetensors"
    aside = weights.rename(toy / "aside")
    said = {
        (TABLE,): "weights of toy/decoder are missing",
        (TABLE, "--cell", "Decodr,gap_tsp8_pct"): "no row Decodr; did you mean Decoder, D=2, W=32?",
        (TABLE, "--cell", "Decoder,gap"): "no measured column gap; did you mean gap_tsp8_pct?",
        (TABLE, "--cell", "gap"): "write ROW,COLUMN",
        ("kept/behind.csv",): "states no scale",
        ("results/toy/table7.csv",): "no such file",
    }
    for (file, *options), words in said.items():
        done = neuroute(toy, "verify", file, *options, *CONFIG, check=False)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
        assert words in done.stderr
    aside.rename(weights)


def test_numbers_are_traced_to_weights_and_labels(toy: Path) -> None:
    """By checksums alone, from a drawn table to the solutions that its model has learned from."""
    made_from = json.loads((toy / TABLE).with_suffix(".json").read_text())["made_from"]
    summary = json.loads((toy / "work/toy/runs/toy/decoder/run.json").read_text())
    measured = json.loads((toy / "work/toy/evaluations/toy/decoder/all.json").read_text())
    evaluation = made_from["evaluations"]["toy/decoder/all"]
    assert evaluation["values_sha256"] == measured["values_sha256"]
    assert evaluation["weights_sha256"] == made_from["runs"]["toy/decoder"]["weights_sha256"]
    assert summary["weights_sha256"] == evaluation["weights_sha256"]
    trained_on = summary["labels_sha256"]
    assert trained_on.items() <= made_from["labels"].items()
    assert len(trained_on) == 2  # to learn from, and to be validated on
    assert set(made_from["labels"]) == {file.stem for file in (toy / "work/toy/labels").glob("*.json")}
    assert made_from["cells"] == {"Decoder, D=2, W=32": {"gap_tsp8_pct": "toy/decoder"}}
    for source in (summary["source"], measured["source"], made_from["source"]):
        assert set(source) == {"version", "commit", "dirty"}
