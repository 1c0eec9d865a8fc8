"""Scales of one's own: the smoke scale with something else in it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from neuroute.core.errors import NeurouteError
from neuroute.plan.config import load_scale

ROOT = Path(__file__).resolve().parents[2]


def smoke_with(paper: str, path: tuple[Any, ...], value: object) -> dict[str, Any]:
    """The smoke scale with one value of a paper's another; None: without it."""
    values: dict[str, Any] = yaml.safe_load((ROOT / "workflow" / "scales" / "smoke.yaml").read_text())
    # YAML's anchors are one object each: a copy, so that nothing else changes with it.
    place = values[paper] = json.loads(json.dumps(values[paper]), object_hook=_integer_keys)
    keys = [_integer(key) for key in path]
    for key in keys[:-1]:
        place = place[key]
    if value is None:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    return values


def _integer_keys(given: dict[str, Any]) -> dict[Any, Any]:
    return {_integer(key): value for key, value in given.items()}


def _integer(key: Any) -> Any:
    return int(key) if isinstance(key, str) and key.isdigit() else key


def written(folder: Path, values: dict[str, Any]) -> str:
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump(values))
    return str(path)


def refused(folder: Path, values: dict[str, Any], words: str) -> None:
    """In one line."""
    with pytest.raises(NeurouteError, match=words) as caught:
        load_scale(written(folder, values))
    assert "\n" not in str(caught.value)
