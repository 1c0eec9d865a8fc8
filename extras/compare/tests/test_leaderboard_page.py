"""The leaderboard's page and its one file follow from the records that are kept, and name every run of the survey."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from neuroute_compare.records import published_runs

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def leaderboard(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("docs/generate/leaderboard.py")


@pytest.mark.slow
def test_the_page_is_that_of_the_kept_records(leaderboard: ModuleType) -> None:
    text = leaderboard.PAGE.read_text()
    assert text == leaderboard.filled(text), "run: python docs/generate/leaderboard.py"
    assert sum(f"| {run['method']} | {run['how']} |" in text for run in published_runs()) == 86


@pytest.mark.slow
def test_the_file_drawn_anew_is_that_of_the_page(leaderboard: ModuleType, tmp_path: Path) -> None:
    leaderboard.draw(tmp_path)
    drawn, kept = ((folder / "leaderboard.html").read_text() for folder in (tmp_path, leaderboard.FOLDER))
    data, of_kept = map(rows_of, (drawn, kept))
    assert data == of_kept, "run: python docs/generate/leaderboard.py"
    lines = [line.split(" | ") for line in leaderboard.tables().splitlines() if re.match(r"\| [\d–]", line)]
    assert [cells[0].removeprefix("| ") for cells in lines] == [str(row["rank"] or "–") for row in data]
    for cells, row in zip(lines, data, strict=True):
        name = f"**{row['method']}**" if row["here"] else row["method"]
        assert cells[1:3] == [name, row["how"]]
        tried, solved = (sum(cell[i] for cell in row["cells"]) for i in (2, 3))
        assert row["problem"] != "tsp" or f"{solved}/{tried}" in cells
    measured = pd.read_csv(leaderboard.LEADERS, usecols=["problem", "method"]).drop_duplicates()
    here = {(row["problem"], row["method"]) for row in data if row["here"]}
    assert here == set(measured.itertuples(index=False, name=None))


def rows_of(page: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(page.partition('type="application/json">')[2].partition("</script>")[0])[
        "rows"
    ]
    return rows
