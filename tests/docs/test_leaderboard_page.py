"""The leaderboard's page and its one file follow from the records that are kept, and name every run of the survey."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from neuroute.comparison.records import published_runs

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def leaderboard(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("docs/generate/leaderboard.py")


@pytest.mark.slow
def test_the_page_is_that_of_the_kept_records(leaderboard: ModuleType) -> None:
    text = leaderboard.PAGE.read_text()
    assert text == leaderboard.filled(text), "run: python docs/generate/leaderboard.py"
    assert sum(f"| {run['method']} | {run['how']} |" in text for run in published_runs()) == 86


@pytest.mark.slow
def test_the_file_has_the_same_methods(leaderboard: ModuleType) -> None:
    text = (leaderboard.FOLDER / "leaderboard.html").read_text()
    data = json.loads(text.partition('type="application/json">')[2].partition("</script>")[0])
    tables = leaderboard.tables()
    assert len(data["rows"]) == sum(
        line.startswith("| ") and not line.startswith("| #") for line in tables.splitlines()
    )
    for row in data["rows"]:
        tried, solved = (sum(cell[i] for cell in row["cells"]) for i in (2, 3))
        name = f"**{row['method']}**" if row["here"] else row["method"]
        line = next(line for line in tables.splitlines() if f"| {name} | {row['how']} |" in line)
        if row["problem"] == "tsp":
            assert f"| {solved}/{tried} |" in line
