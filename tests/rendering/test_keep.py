"""Keeping what was measured: each paper's artifacts in a place of their own, with provenance in every row."""

import hashlib
import json
import re
from pathlib import Path

import pandas as pd
import pytest

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.rendering.kept import METADATA, keep, write_crate


def drawn(stem: Path, scale: str, kind: str = "table") -> Path:
    stem.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame({"gap": [1.5, 2.5]}).to_csv(stem.with_suffix(".csv"), index=False)
    stem.with_suffix(".png").write_bytes(b"picture")
    about = {"paper": stem.parent.name, "name": stem.name, "title": f"Title of {stem.name}", "kind": kind}
    source = {"version": "1.0.0", "commit": "0123456789abcdef", "dirty": True}
    made_from = {
        "source": source | {"commit": "fedcba9876543210", "dirty": False},
        "runs": {"pens/pens_a": {"weights_sha256": "a" * 64, "source": source}},
        "evaluations": {"pens/pens_a/all": {"values_sha256": "b" * 64, "weights_sha256": "a" * 64, "source": source}},
        "labels": {"tsp_test_concorde": "c" * 64},
    }
    measured_on = {"scale": scale, "devices": ["a CPU"]}
    stem.with_suffix(".json").write_text(json.dumps(about | {"measured_on": measured_on, "made_from": made_from}))
    return stem


def test_papers_keep_apart(tmp_path: Path) -> None:
    results, folder = tmp_path / "results", tmp_path / "measured"
    stems = [drawn(results / "table1", "laptop"), drawn(results / "pens" / "table1", "laptop")]
    stems += [drawn(results / "pens" / "figure1", "laptop", "figure"), drawn(results / "table2", "smoke")]
    kept = keep(results, [*stems, results / "not_drawn"], "laptop", folder, "abc")
    of_figure = [folder / "pens" / f"figure1.{kind}" for kind in ("png", "csv")]
    assert list(kept) == [folder / "table1.csv", folder / "pens" / "table1.csv", *of_figure]
    table = pd.read_csv(folder / "pens" / "table1.csv")
    assert set(table.commit) == {"abc"}
    assert set(table.device) == {"a CPU"}
    assert table.date.notna().all()
    assert (folder / "pens" / "figure1.png").read_bytes() == b"picture"
    assert not (folder / "pens" / "table1.png").exists()


def test_the_commit_is_that_of_the_measurements(tmp_path: Path) -> None:
    """Not the current one, which may have been edited since."""
    (csv,) = keep(tmp_path, [drawn(tmp_path / "table1", "laptop")], "laptop", tmp_path / "to", None)
    assert set(pd.read_csv(csv).commit) == {"01234567 with uncommitted changes"}


def test_kept_files_are_an_ro_crate(tmp_path: Path) -> None:
    """Each file with its checksum, and what it was made from with theirs; what was kept before stays described."""
    results, folder = tmp_path / "results", tmp_path / "measured"
    for names in (["table1"], ["table2", "figure1"]):
        stems = [drawn(results / "pens" / name, "laptop", name.rstrip("12")) for name in names]
        write_crate(folder, "laptop", keep(results, stems, "laptop", folder, "abc"))
    entities = {each["@id"]: each for each in json.loads((folder / METADATA).read_text())["@graph"]}
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.*") if path.name != METADATA}
    assert len(files) == 4
    for name, path in files.items():
        assert entities[name]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert entities[name]["name"] == f"Title of {path.stem}"
    assert {each["@id"] for each in entities["./"]["hasPart"]} == set(files)
    assert [each["@id"] for each in entities["./"]["mentions"]] == [
        f"#draw/pens/{name}" for name in ("table1", "table2", "figure1")
    ]
    draw = entities["#draw/pens/table1"]
    assert {entities[each["@id"]]["identifier"] for each in draw["object"]} == {f"sha256:{c * 64}" for c in "abc"}
    assert {entities[each["@id"]]["softwareVersion"] for each in draw["instrument"]} == {
        "1.0.0, commit 01234567 with uncommitted changes",
        "1.0.0, commit fedcba98",
    }
    named = re.findall('"@id": "([^"]+)"', (folder / METADATA).read_text())
    assert {name for name in named if not name.startswith("https://w3id.org")} == set(entities)
    (folder / METADATA).write_text("{}")
    with pytest.raises(NeurouteError, match="not an RO-Crate"):
        write_crate(folder, "laptop", {})
