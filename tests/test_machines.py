"""What neuroute installs on: the check that `make env` begins with, and that pins and pages agree with it."""

import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def machine(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("workflow/machine.py")


@pytest.mark.parametrize("python", [(3, 11), (3, 12), (3, 13)])
@pytest.mark.parametrize("where", [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")])
def test_these_serve(machine: ModuleType, python: tuple[int, int], where: tuple[str, str]) -> None:
    assert machine.fault(python, *where) == ""


@pytest.mark.parametrize(
    ("python", "where", "says"),
    [
        ((3, 10), ("linux", "x86_64"), "3.11, 3.12 or 3.13 is needed, this is 3.10; run: make PYTHON="),
        ((3, 14), ("linux", "x86_64"), "this is 3.14"),
        ((3, 12), ("darwin", "x86_64"), "this is darwin on x86_64"),
        ((3, 12), ("win32", "AMD64"), "this is win32 on AMD64"),
    ],
)
def test_others_get_one_clear_line(
    machine: ModuleType, python: tuple[int, int], where: tuple[str, str], says: str
) -> None:
    line = machine.fault(python, *where)
    assert says in line
    assert "\n" not in line


def test_make_env_stops_with_that_line_before_it_makes_anything(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\necho 'error: Python 3.11, 3.12 or 3.13 is needed' >&2; exit 1\n")
    old.chmod(0o755)
    venv = tmp_path / "venv"
    done = subprocess.run(
        ["make", "env", f"PYTHON={old}", f"VENV={venv}"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert done.stderr.startswith("error: Python 3.11, 3.12 or 3.13 is needed\n")
    assert not venv.exists()


def test_metadata_and_check_name_the_same_pythons(machine: ModuleType) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (low, high) = (tuple(map(int, v.split("."))) for v in re.findall(r"\d+\.\d+", project["requires-python"]))
    assert tuple((3, minor) for minor in range(low[1], high[1])) == machine.PYTHONS


def test_the_base_needs_no_package_whose_pins_hold_others_back() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert not [need for need in project["dependencies"] if need.startswith("lkh")]
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    assert int(pins["networkx"].split(".")[0]) >= 3
    assert "click" not in pins  # nothing that is installed needs it
    conda = (ROOT / "environment.yml").read_text()
    named = re.findall(r"([\w-]+)==(\S+)", conda)
    assert {name for name, _ in named} == {"ml4co-kit", "LKHpy"}
    lower = {name.lower().replace("_", "-"): pin for name, pin in pins.items()}
    assert all(lower[name.lower()] == pin for name, pin in named)
