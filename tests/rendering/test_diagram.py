"""Drawings of networks follow their templates, with a network's shapes filled in."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from neuroute.evaluation.snapshot import ModuleShapes
from neuroute.pipeline.rendering import diagram, style
from shown import texts

MODEL = ModuleShapes("layers", {"embed.weight": (16, 2)}, 32, 1, 4, 16)
TEMPLATE = """
layout:
  row:
  - box: [a, linear, "{shape[embed]}", "q, k, v {shape[layers.0.qkv]}"]
  - column: "{boxes}"
arrows:
- chain: [a, b0, b1]
"""


def test_sizes_stand_in_their_boxes_and_a_line_without_its_weight_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "drawings").mkdir()
    (tmp_path / "drawings" / "figure9.yaml").write_text(TEMPLATE)
    monkeypatch.setattr(diagram, "files", lambda package: tmp_path)
    study: Any = SimpleNamespace(artifact=SimpleNamespace(id="sit/figure9", paper="sit", name="figure9"))
    with style.house():
        drawn: Any = diagram.Sheet.of(study, MODEL, boxes=[diagram.box(f"b{k}", f"expert {k}") for k in range(2)])
    assert texts(drawn) == ["linear", "16 × 2", "expert 0", "expert 1"]
    assert drawn.places["a"].right < drawn.places["b0"].left
    assert drawn.places["b0"].low > drawn.places["b1"].high
