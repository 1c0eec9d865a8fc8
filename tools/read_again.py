"""Read printed numbers of the papers a second time, from their texts: `python tools/read_again.py TEXTS OUT.csv`.

TEXTS holds <paper>.txt.  Of all cells with a printed number in `papers/*/published/table*.csv` 100 are drawn (seed 0).
A cell is found in the text by its neighbours alone, the other numbers of its row or column in the order of the CSV;
what stands between them in the text is the second reading.  A cell that is misread or in a wrong place differs there.
"""

import csv
import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAPERS = ROOT / "src" / "neuroute" / "pipeline" / "papers"
CELLS, SEED = 100, 0
REACH = 6  # neighbours on each side
LEAST = 2  # neighbours that must stand where they should
MARKS = re.compile(r"<[^>]*>|\\boldsymbol|\\mathbf|\\textbf|[\\${}†‡]")
NUMBER = re.compile(r"[-<]?\d[\d,]*\.?\d*(?:e-?\d+)?(?:[smhd]|GB|MB|M)?")
COLUMNS = ("paper", "table", "method", "settings", "problem", "n", "metric", "first", "second", "by", "neighbours")


class Cell(NamedTuple):
    paper: str
    row: dict[str, str]

    @property
    def printed(self) -> str:
        return plain(self.row["printed"])


class Place(NamedTuple):
    """Where a cell's neighbours stand in a text."""

    matches: int
    by: str  # "row", "instance" (a row of all methods) or "column"
    token: str  # what stands in the cell's place


def plain(text: str) -> str:
    """A printed number without marks and percent signs."""
    return MARKS.sub("", text).replace("−", "-").replace("%", "").replace(",", "").strip()


def tokens_of(line: str) -> list[str]:
    """The numbers of a line, and what stands for one."""
    parts = re.split(r"[\s()|]+", MARKS.sub("", line).replace("−", "-").replace("—", "-"))
    tokens = (plain(part.rstrip("*") or "*") for part in parts)
    return [token for token in tokens if NUMBER.fullmatch(token) or token in ("*", "-", "OOM", "N/A")]


def cells(paper: str) -> Iterator[Cell]:
    """All cells of a paper's tables that have a number."""
    for file in sorted((PAPERS / paper / "published").glob("table*.csv")):
        with file.open(newline="") as opened:
            rows = list(csv.DictReader(opened))
        yield from (Cell(paper, row) for row in rows if row.get("printed"))


def neighbours(cell: Cell, every: Sequence[Cell], keys: Sequence[str]) -> dict[int, str]:
    """Distance -> printed, of cells that agree in these columns, in the order of the CSV."""
    group = [other for other in every if all(other.row[key] == cell.row[key] for key in ("table", *keys))]
    here = next(i for i, other in enumerate(group) if other.row is cell.row)
    near = range(max(0, here - REACH), min(len(group), here + REACH + 1))
    return {i - here: group[i].printed for i in near if i != here}


def places_of(near: dict[int, str], by: str, lines: Sequence[Sequence[str]]) -> Iterator[Place]:
    """Along the numbers of the text, and across its lines, counted from their ends."""
    stream = [token for line in lines for token in line]
    for start in range(len(stream)):
        found = sum(0 <= start + d < len(stream) and stream[start + d] == text for d, text in near.items())
        if found >= LEAST:
            yield Place(found, by, stream[start])
    for number, line in enumerate(lines):
        for from_end in range(1, len(line) + 1):
            others = ((number + d, text) for d, text in near.items() if 0 <= number + d < len(lines))
            found = sum(len(lines[at]) >= from_end and lines[at][-from_end] == text for at, text in others)
            if found >= LEAST:
                yield Place(found, by, line[-from_end])


def read_again(cell: Cell, every: Sequence[Cell], lines: Sequence[Sequence[str]]) -> Place | None:
    """The place that most neighbours have; None where too few of them stand together, or as many in two places."""
    where = ("problem", "distribution", "n", "instance")
    ways = {"row": ("method", "method_params", "problem"), "instance": where, "column": (*where, "metric")}
    places = [place for by, keys in ways.items() for place in places_of(neighbours(cell, every, keys), by, lines)]
    most = max((place.matches for place in places), default=0)
    best = [place for place in places if place.matches == most]
    return best[0] if len({place.token for place in best}) == 1 else None


def main(texts: Path, out: Path) -> int:
    """Write what was compared; returns how many cells differ or were not found."""
    papers = sorted(path.parent.name for path in PAPERS.glob("*/published"))
    papers = [paper for paper in papers if (texts / f"{paper}.txt").is_file()]
    every = {paper: list(cells(paper)) for paper in papers}
    numbers = [cell for paper in papers for cell in every[paper] if NUMBER.fullmatch(cell.printed)]
    drawn = sorted(random.Random(SEED).sample(range(len(numbers)), CELLS))
    lines = {
        paper: [line for line in map(tokens_of, (texts / f"{paper}.txt").read_text().splitlines()) if line]
        for paper in papers
    }
    rows = []
    for number in drawn:
        cell = numbers[number]
        place = read_again(cell, every[cell.paper], lines[cell.paper])
        keys = ("table", "method", "method_params", "problem", "n", "metric")
        about = [cell.paper, *(cell.row[key] for key in keys)]
        read = [place.token, place.by, place.matches] if place else ["", "", 0]
        rows.append([*about, cell.printed, *read])
    with out.open("w", newline="") as opened:
        csv.writer(opened, lineterminator="\n").writerows([COLUMNS, *rows])
    unlike = [row for row in rows if row[7] != row[8]]
    print(f"{out}: {CELLS} of {len(numbers)} cells, {CELLS - len(unlike)} agree")
    for row in unlike:
        print(*row)
    return len(unlike)


if __name__ == "__main__":
    sys.exit(bool(main(Path(sys.argv[1]), Path(sys.argv[2]))))
