"""Systems of other authors, and of anybody: packages that an entry point of the group `neuroute.systems` names.

It is a system's name and its package: `[project.entry-points."neuroute.systems"]`, `mine = "my_package"`.  Of its
modules these are looked for, and none has to be there: `system` (its runs, see `pipeline/plan/systems.py`), `layout`
(published weights, see `networks/layouts/rules.py`), `decoding` (its ways to decode), `solvers`.
"""

import importlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from neuroute.core.dotted import code_in
from neuroute.core.errors import NeurouteError

GROUP = "neuroute.systems"


@cache
def packages() -> dict[str, str]:
    """Name of each system that is installed -> its package.  Raises NeurouteError if two have a name."""
    found: dict[str, str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        if found.setdefault(point.name, point.value) != point.value:
            raise NeurouteError(f"system '{point.name}': both {found[point.name]} and {point.value} are installed")
    return found


@cache
def roots() -> dict[str, Path]:
    """Top-level package of each system -> its folder; nothing is imported."""
    tops = dict.fromkeys(package.partition(".")[0] for package in packages().values())
    specs = {top: importlib.util.find_spec(top) for top in tops}
    return {
        top: Path(folder).resolve()
        for top, spec in specs.items()
        if spec
        for folder in spec.submodule_search_locations or ()
    }


def parts(module: str, name: str) -> Iterator[tuple[str, Any]]:
    """(system, value) of all systems that have `name` in this module of theirs.

    Raises NeurouteError, in one line with file and line number, if a system's code fails.
    """
    for system, package in packages().items():
        if (folder := roots().get(package.partition(".")[0])) is None:
            raise NeurouteError(f"system '{system}': no package {package}; install it anew, or uninstall it")
        with code_in(folder):
            there = importlib.util.find_spec(f"{package}.{module}")
            found = importlib.import_module(f"{package}.{module}") if there else None
        if hasattr(found, name):
            yield system, getattr(found, name)
