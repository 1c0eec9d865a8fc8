"""The second reading of printed numbers is as it was kept, and sees a number that is another."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
import read_again

KEPT = Path(__file__).parents[1] / "docs" / "measured" / "checks" / "second_reading.csv"


@pytest.fixture(scope="module")
def texts(public: Callable[[str], Path]) -> Path:
    return public("papers")


def test_the_kept_reading_is_that_of_the_texts(texts: Path, tmp_path: Path) -> None:
    """Five of a hundred stand where too few of their neighbours do, and were read by eye; none differs."""
    read_again.main(texts, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == KEPT.read_text()
    with KEPT.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert sum(row["first"] == row["second"] for row in rows) == 95
    assert [row["second"] for row in rows if row["first"] != row["second"]] == [""] * 5


def test_a_number_that_is_another_is_seen(texts: Path) -> None:
    """Also where a value of the next column was taken."""
    every = list(read_again.cells("icam"))
    lines = [line for line in map(read_again.tokens_of, (texts / "icam.txt").read_text().splitlines()) if line]
    place = next(
        i for i, cell in enumerate(every) if cell.row["method"].startswith("GLOP") and cell.printed == "23.8403"
    )
    for wrong in ("23.8430", every[place + 1].printed):
        row = every[place].row | {"printed": wrong}
        changed = [*every[:place], read_again.Cell("icam", row), *every[place + 1 :]]
        found = read_again.read_again(changed[place], changed, lines)
        assert found is not None
        assert found.token == "23.8403"
