"""Drawings of networks follow their templates, with a network's shapes filled in."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from figure_checks import texts
from neuroute.evaluation.snapshot import ModuleShapes
from neuroute.pipeline.rendering import diagram, style

MODEL = ModuleShapes("layers", {"embed.weight": (16, 2)}, 32, 1, 4, 16)
TEMPLATE = """
layout:
  row:
  - box: [a, linear, "{shape[embed]}", "q, k, v {shape[layers.0.qkv]}"]
  - column: "{boxes}"
arrows:
- chain: [a, b0, b1]
"""


def sheet(monkeypatch: pytest.MonkeyPatch, folder: Path, template: str, **values: Any) -> diagram.Sheet:
    (folder / "drawings").mkdir()
    (folder / "drawings" / "figure9.yaml").write_text(template)
    monkeypatch.setattr(diagram, "files", lambda package: folder)
    study: Any = SimpleNamespace(artifact=SimpleNamespace(id="sit/figure9", paper="sit", name="figure9"))
    with style.house():
        return diagram.Sheet.of(study, MODEL, **values)


def test_sizes_stand_in_their_boxes_and_a_line_without_its_weight_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    boxes = [diagram.box(f"b{k}", f"expert {k}") for k in range(2)]
    drawn = sheet(monkeypatch, tmp_path, TEMPLATE, boxes=boxes)
    drawing: Any = drawn
    assert [text for text in texts(drawing) if text] == ["linear", "16 × 2", "expert 0", "expert 1"]
    assert drawn.places["a"].right < drawn.places["b0"].left
    assert drawn.places["b0"].low > drawn.places["b1"].high
