"""Keeping what was measured: each paper's artifacts in a place of their own, with provenance in every row."""

import json
from pathlib import Path

import pandas as pd
import pytest

from neuroute.core.errors import NeurouteError
from neuroute.rendering.keep import keep


def drawn(stem: Path, scale: str, kind: str = "table") -> Path:
    stem.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame({"gap": [1.5, 2.5]}).to_csv(stem.with_suffix(".csv"), index=False)
    stem.with_suffix(".png").write_bytes(b"picture")
    about = {"kind": kind, "measured_on": {"scale": scale, "devices": ["a CPU"]}}
    stem.with_suffix(".json").write_text(json.dumps(about))
    return stem


def test_papers_keep_apart(tmp_path: Path) -> None:
    results, folder = tmp_path / "results", tmp_path / "measured"
    stems = [drawn(results / "table1", "laptop"), drawn(results / "pens" / "table1", "laptop")]
    stems += [drawn(results / "pens" / "figure1", "laptop", "figure"), drawn(results / "table2", "smoke")]
    kept = keep(results, [*stems, results / "not_drawn"], "laptop", folder, "abc")
    assert kept == [folder / "table1.csv", folder / "pens" / "table1.csv", folder / "pens" / "figure1.csv"]
    table = pd.read_csv(folder / "pens" / "table1.csv")
    assert set(table.commit) == {"abc"}
    assert set(table.device) == {"a CPU"}
    assert table.date.notna().all()
    assert (folder / "pens" / "figure1.png").read_bytes() == b"picture"
    assert not (folder / "pens" / "table1.png").exists()


def test_nothing_to_keep_is_said(tmp_path: Path) -> None:
    with pytest.raises(NeurouteError, match="nothing was drawn at scale paper"):
        keep(tmp_path, [drawn(tmp_path / "table1", "laptop")], "paper", tmp_path / "to", "abc")
