"""README shows the last lines of a run of smoke scale as they were kept, and of a run of today's plan."""

import re

from neuroute.plan.build import build_plan
from neuroute.plan.config import load_config
from pages import ROOT, blocks

KEPT = (ROOT / "docs/measured/smoke/end_of_run.txt").read_text()


def test_what_a_run_ends_with_is_that_runs_own_output() -> None:
    assert blocks(ROOT / "README.md", "text") == [KEPT]


def test_the_run_is_of_todays_plan() -> None:
    plan = build_plan(load_config(ROOT / "config.yaml"))
    runs = re.findall(r"^(\w+/\w+): ", KEPT, re.M)
    assert runs
    assert set(runs) <= set(plan.runs)
    assert f"scale {plan.scale.name}:" in KEPT
