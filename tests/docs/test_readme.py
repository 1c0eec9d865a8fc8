"""README shows the commands as typed, and the last lines of a run of smoke scale as they were kept."""

import re

from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import load_config
from neuroute.specs.objects import FIGURE_FORMATS, TABLE_FORMATS
from pages import ROOT, lines

KEPT = (ROOT / "docs/measured/smoke/end_of_run.txt").read_text()


def test_the_run_is_of_todays_plan() -> None:
    plan = build_plan(load_config(ROOT / "config.yaml"))
    runs = re.findall(r"^(\w+/\w+): ", KEPT, re.M)
    assert runs
    assert set(runs) <= set(plan.runs)
    assert f"scale {plan.scale.name}:" in KEPT


def test_the_folder_of_results_comes_with_a_page_of_what_is_written_there() -> None:
    page = (ROOT / "results" / "README.md").read_text()
    assert "!/results/README.md" in (ROOT / ".gitignore").read_text().splitlines()
    for ending in {*TABLE_FORMATS, *FIGURE_FORMATS}:
        assert f".{ending}`" in page
    for paper in build_plan(load_config(ROOT / "config.yaml")).papers:
        assert paper == "scaling" or f"`{paper}/`" in page


def test_the_three_commands_of_the_project_are_shown_as_typed() -> None:
    everything = "snakemake --cores 8 --resources gpu=1 all"
    assert {everything, "snakemake results/table1.csv", "snakemake --until evaluate"} <= {*lines(ROOT / "README.md")}
