"""The page of a comparison: its sums, that it needs nothing else, and a network of one's own among published ones."""

import csv
import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from commands import done

from compared import records
from neuroute_compare.compare import write
from neuroute_compare.summary import Summary

ROOT = Path(__file__).resolve().parents[3]


class Parts(HTMLParser):
    """Collects what a page names from elsewhere, its data and the tags that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.sources, self.data, self._inside = list[str](), "", False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        self._inside = tag == "script" and ("id", "data") in attrs

    def handle_data(self, data: str) -> None:
        self.data += data if self._inside else ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = False


def data_of(path: Path) -> Any:
    parts = Parts()
    parts.feed(path.read_text())
    assert parts.sources == []  # one file, whole
    return json.loads(parts.data)


def test_the_page_adds_up_what_was_solved(tmp_path: Path) -> None:
    costs: dict[str, list[float | None]] = {"a": [110, 110, 110, 120, 120, None], "</script>": [100] * 6}
    write(records(costs), [10], tmp_path)
    data = data_of(tmp_path / "leaderboard.html")
    assert data["groups"] == ["n < 10", "n ≥ 10"]
    rows = {row["method"]: row for row in data["rows"]}
    assert set(rows) == set(costs)
    assert rows["a"]["cells"] == [["mine", 0, 3, 3, pytest.approx(30), pytest.approx(33)],
                                  ["mine", 1, 3, 2, pytest.approx(40), pytest.approx(24)]]  # fmt: skip
    assert [figure["title"] for figure in data["figures"]] == ["Gap against time", "Gap against size"]
    assert all(figure["source"].startswith("data:image/svg+xml;base64,") for figure in data["figures"])


@pytest.mark.slow
def test_one_command_sets_a_network_of_ones_own_among_published_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tutorial = (ROOT / "docs" / "tutorial" / "add_a_network.md").read_text()
    code = next(part for part in tutorial.split("```python\n")[1:] if "class Tiny" in part).partition("```")[0]
    monkeypatch.chdir(tmp_path)
    Path("tiny_of_mine.py").write_text(code)
    made = (  # set by hand to go to the nearest node, by the sum of both distances
        "import sys; sys.path.append('.')\nfrom pathlib import Path\nimport torch\n"
        "from neuroute.networks.weights import build, save_checkpoint\nfrom neuroute.core.digest import code_digest\n"
        "from neuroute.specs.objects import Network\n"
        "n = Network(kind='tiny_of_mine:Tiny', arguments={'hidden': 4})\nnet = build(n)\n"
        "first, _, last = net.score\nturned = torch.tensor([[1., 0], [-1, 0], [0, 1], [0, -1]])\n"
        "with torch.no_grad():\n    for each in net.parameters(): each.zero_()\n"
        "    first.weight[:, :2], first.weight[:, 2:4] = turned, -turned\n    last.weight.fill_(-1)\n"
        "about = {'run': 'x/y', 'network': n.model_dump(), 'code': code_digest(n.kind)}\n"
        "save_checkpoint(Path('m.safetensors'), net, about)\n"
    )
    subprocess.run([sys.executable, "-c", made], check=True)
    command = (
        "compare --set tsplib --max-nodes 70 --method tiny_of_mine:Tiny=m.safetensors --published all "
        "--against Tiny --seconds 0.1 --benchmarks . --device cpu"
    )
    done(*command.split())
    folder = Path("results/compare")
    table = {(row["method"], row["how"]): row for row in csv.DictReader((folder / "table.csv").open())}
    assert len(table) == 49 + 2
    assert table["Tiny", "greedy"]["solved_all_measured"] == "3/3"
    assert float(table["Tiny", "greedy"]["gap_all_pct_measured"]) < 60
    assert float(table["lehd", "published: greedy"]["above_points_measured"]) < 0
    assert {"Tiny", "lehd"} <= {row["method"] for row in csv.DictReader((folder / "pareto.csv").open())}
    page = {row["method"]: row for row in data_of(folder / "leaderboard.html")["rows"]}
    assert page["Tiny"]["here"]
    assert page["lehd"]["on"] == "1x RTX 3090 24 GB"
    assert page["lehd"]["about"].startswith("LEHD: greedy")


def test_methods_that_solve_other_instances_leave_most_to_compare() -> None:
    costs: dict[str, list[float | None]] = {
        "a": [101] * 6,
        "first": [103, 103, 103, 103, None, None],
        "last": [None, None, 104, 104, 104, 104],
        "middle": [105, None, None, 105, 105, 105],
    }
    summary = Summary(records(costs))
    assert len(summary.common) == 4
    assert {key[0] for key in summary.apart} == {"last", "middle"}
    mine = Summary(records(costs, kinds=dict.fromkeys(("a", "first", "middle"), "file")))
    assert {key[0] for key in mine.apart} == {"first"}  # what is measured here goes first
