"""The table "protocol, paper against here" follows from the plan and hides no departure."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from refusals import one_line

from neuroute.pipeline.plan.build import Plan, build_plan
from neuroute.pipeline.plan.claims import Protocol
from neuroute.pipeline.plan.config import Scale, parse_config
from neuroute.pipeline.rendering.protocol import HEADS, Line, protocol_lines
from neuroute.pipeline.rendering.report import write_report
from neuroute.specs.decodings import beam_search

PAPERS = ("scaling", "pens", "sit", "icam", "mvmoe")
ROOT = Path(__file__).resolve().parents[2]
SCALES = sorted(path.stem for path in (ROOT / "workflow" / "scales").glob("*.yaml") if path.stem != "zoo")


@pytest.fixture(scope="module")
def smoke() -> Plan:
    return build_plan(parse_config({"scale": "smoke"}))


def find(lines: list[Line], where: str, test: str) -> dict[str, tuple[str, bool]]:
    """The line of an artifact whose test set begins so, by heading."""
    cells = [dict(zip(HEADS, line.cells(), strict=True)) for line in lines]
    (found,) = [c for c in cells if c["where"][0] == where and c["test set"][0].startswith(test)]
    return found


@pytest.mark.parametrize("scale", SCALES)
def test_every_test_set_of_every_artifact_is_in_it(scale: str) -> None:
    plan = build_plan(parse_config({"scale": scale}))
    assert all(protocol_lines(plan, key) for key in PAPERS if key in plan.papers)


def test_a_departure_is_marked_and_an_agreement_is_not(smoke: Plan) -> None:
    table4 = find(protocol_lines(smoke, "scaling"), "Table 4", "TSP20")
    assert table4["instances"] == ("64 (paper: 1,000)", True)
    assert table4["averaging"] == ("ratio of means", False)
    assert table4["precision"] == ("fp32 (paper: not stated)", False)


def with_protocol(plan: Plan, change: Callable[[Protocol], Protocol | None]) -> Plan:
    """The plan with another protocol of `scaling`."""
    paper = plan.papers["scaling"]

    def changed(scale: Scale) -> Iterator[Protocol]:
        assert paper.protocol
        yield from (new for old in paper.protocol(scale) if (new := change(old)))

    return replace(plan, papers={**plan.papers, "scaling": replace(paper, protocol=changed)})


def test_what_the_protocol_does_not_name_is_refused(smoke: Plan) -> None:
    without = with_protocol(smoke, lambda p: None if "explosion" in p.name else p)
    with one_line(r"scaling/table14: tests scaling/base_\d+x\d+ on TSP\d+ explosion; add it"):
        protocol_lines(without, "scaling")


def test_another_budget_or_averaging_is_seen(smoke: Plan) -> None:
    other = with_protocol(smoke, lambda p: replace(p, budget=(beam_search(7),), averaging="median"))
    line = find(protocol_lines(other, "scaling"), "Table 14", "TSP20")
    assert line["budget"] == ("greedy (paper: beam 7)", True)
    assert line["averaging"] == ("ratio of means (paper: median)", True)


def test_departures_are_bold_in_the_report(smoke: Plan, tmp_path: Path) -> None:
    lines = protocol_lines(smoke, "scaling")
    out = tmp_path / "index.html"
    write_report({"scaling": []}, out, smoke.scale, protocols={"scaling": lines})
    assert "<b>64 (paper: 1,000)</b>" in out.read_text()
