"""Plans of the scales, each built once, and scales of one's own: the smoke scale with one value changed."""

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from refusals import one_line

from neuroute.pipeline.plan.build import Plan, build_plan
from neuroute.pipeline.plan.config import load_scale, parse_config
from neuroute.specs.objects import Reinforced, Run

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ("scaling", "pens", "sit", "icam", "mvmoe")
SCALES = ("smoke", "laptop", "gpu", "paper")


def plan_of(scale: str = "smoke", papers: tuple[str, ...] = PAPERS, **changes: Any) -> Plan:
    """Return the plan of a scale and some papers, with other keys of config.yaml.  Each is built once: it is frozen."""
    return _plan(scale, papers, json.dumps(changes))


@cache
def _plan(scale: str, papers: tuple[str, ...], changes: str) -> Plan:
    return build_plan(parse_config({"scale": scale, "papers": list(papers), **json.loads(changes)}))


def reinforced(run: Run) -> Reinforced:
    assert isinstance(run.training, Reinforced)
    return run.training


def read_published(paper: str, table: int) -> list[dict[str, str]]:
    with (ROOT / f"src/neuroute/pipeline/papers/{paper}/published/table{table}.csv").open() as file:
        return list(csv.DictReader(file))


def smoke() -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((ROOT / "workflow" / "scales" / "smoke.yaml").read_text())
    return values


def smoke_with(paper: str, path: tuple[Any, ...], value: object) -> dict[str, Any]:
    """Return the smoke scale with another value at a path of a paper's block; None: without it."""
    values = smoke()
    # YAML's anchors are one object each: a copy, so that nothing else changes with it.
    place = values[paper] = json.loads(json.dumps(values[paper]), object_hook=_integer_keys)
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return values


def _integer_keys(block: dict[str, Any]) -> dict[Any, Any]:
    return {int(key) if key.isdigit() else key: value for key, value in block.items()}


def write_scale(folder: Path, values: dict[str, Any]) -> str:
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump(values))
    return str(path)


def expect_refusal(folder: Path, values: dict[str, Any], words: str) -> None:
    """Expect that a scale is refused in one line."""
    with one_line(words):
        load_scale(write_scale(folder, values))
