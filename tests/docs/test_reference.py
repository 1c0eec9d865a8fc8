"""Pages that are made from the code say all of it."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from neuroute.api.zoo import Card, Gap
from neuroute.evaluation.loaded import COLUMNS
from neuroute.pipeline.cli import COMMANDS
from neuroute.pipeline.plan.config import Config, load_scale
from neuroute.pipeline.plan.papers import load_paper

Generator = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def generator(script: Generator) -> Generator:
    """Modules of docs/generate by name; these need nothing that builds sites."""
    return lambda name: script(f"docs/generate/{name}.py")


@pytest.fixture(scope="module")
def reference(generator: Generator) -> ModuleType:
    return generator("reference")


def test_every_command_has_its_section(reference: ModuleType) -> None:
    text = reference.cli()
    for command in (command for commands in COMMANDS.values() for command in commands):
        assert f"## `neuroute {command.__name__.replace('_', '-')}`" in text


def test_every_key_and_column_has_its_row(reference: ModuleType) -> None:
    rows = reference.config()
    for key in Config.model_fields:
        assert f"\n| `{key}` | " in rows
    assert "[RunChange](#runchange)" in rows
    assert "\n## RunChange\n" in rows
    for column in COLUMNS:
        assert f"\n| `{column}` | " in reference.record_columns()
    assert "| `scaling` | [ScalingScale](#scalingscale) |" in reference.scales()


def test_a_card_shows_what_was_measured(generator: Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    gap = Gap(set="TSP100", decoding="greedy", instances=100, gap=3.25, low=3.0, high=3.5, reference="lkh", seconds=2)
    facts = {"name": "tsp", "problem": "tsp", "run": "zoo/tsp", "network": "LEHD", "parameters": 12345, "seed": 0}
    facts |= {
        "trained_on": "TSP20 to TSP100",
        "trained_nodes": (20, 100),
        "commit": "abc1234",
        "date": "2026-01-01",
        "device": "a CPU",
    }
    card = Card(**facts, seconds=600, nodes=(20, 500), gaps=(gap,), sha256="0" * 64, decision=(0.5,))  # type: ignore[arg-type]
    cards = generator("cards")
    monkeypatch.setattr(cards, "models", lambda: [card])
    text = cards.page()
    assert "| [tsp](#tsp) | TSP | 20 to 500 | 12,345 | 3.25 % (TSP100, greedy) |" in text
    assert "| TSP100 | greedy | 100 | 3.25 [3.00, 3.50] | lkh | 2 |" in text
    assert "12,345 parameters" in text


def test_pages_that_follow_from_the_code_are_those_of_today(generator: Generator) -> None:
    pages = generator("pages")
    old = [name for name in pages.PAGES if (pages.DOCS / name).read_text() != pages.text_of(name)]
    assert old == [], "run: python docs/generate/pages.py"


@pytest.mark.parametrize("name", ["edge_maps", "seeds", "speed", pytest.param("claims", marks=pytest.mark.slow)])
def test_made_parts_of_pages_are_those_of_what_was_kept(name: str, generator: Generator) -> None:
    made = generator(name)
    for page in made.PAGES:
        text = page.read_text()
        assert made.MADE.search(text)
        assert text == made.filled(text), f"run: python docs/generate/{name}.py"


def test_kept_artifacts_stand_with_what_made_them(generator: Generator) -> None:
    kept = generator("kept")
    text = kept.artifacts("scaling")
    assert "![Figure 1, measured](../measured/laptop/figure1.png)" in text
    assert "    | Greedy, depth=6, width=128 | D=1, W=16 | 6.74 (0.464) |" in text
    assert "[table12.csv](../measured/laptop/table12.csv): laptop, AMD EPYC, d9a58cd8, 2026-11-29" in text


def test_the_picture_of_the_first_page_is_of_the_kept_tables(generator: Generator) -> None:
    headline = generator("headline")
    assert headline.made_from().encode() in headline.PICTURE.read_bytes(), "run: python docs/generate/headline.py"


def test_a_notebook_becomes_a_page(generator: Generator, tmp_path: Path) -> None:
    printed = {"output_type": "stream", "name": "stdout", "text": ["3\n"]}
    drawn = {"output_type": "execute_result", "data": {"image/png": "iVBO\n", "text/plain": ["a drawing"]}}
    code = {"cell_type": "code", "source": ["x = 3\n", "print(x)"], "outputs": [printed, drawn]}
    cells = [{"cell_type": "markdown", "source": ["# Title\n", "Words."]}, code]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    text = generator("notebook").page(tmp_path / "a.ipynb")
    assert text.startswith("# Title\nWords.\n")
    assert text.endswith("```python\nx = 3\nprint(x)\n```\n\n```text\n3\n```\n\n![](data:image/png;base64,iVBO)\n")


def test_the_page_of_protocols_has_a_table_for_each_paper_at_its_own_scale(generator: Generator) -> None:
    text = generator("protocols").page()
    papers = [load_paper(key) for key in load_scale("paper").blocks]
    assert all(f"\n## {paper.title}\n" in text for paper in papers if paper.protocol)
    assert text.count("\n| where | test set | source | instances | ") == sum(
        paper.protocol is not None for paper in papers
    )
    assert "**Concorde (paper: LKH3)**" in text
