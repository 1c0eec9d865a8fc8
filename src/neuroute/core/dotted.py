"""Functions and classes by dotted name, and installed systems: the plan stays free of the modules that it names."""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from neuroute.core.errors import NeurouteError

PACKAGE = Path(__file__).resolve().parents[1]


def resolve(dotted: str) -> Callable[..., Any]:
    """Return the function `package.module:function`.  Raises NeurouteError if there is none."""
    module, _, name = dotted.partition(":")
    try:
        function: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return function
    except (ModuleNotFoundError, AttributeError) as error:
        raise NeurouteError(f"function {dotted}: {error}") from None


def place_of(function: Callable[..., Any]) -> str:
    """Say where a function stands: file and line number, where it has a code of its own."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}, line {code.co_firstlineno}" if code else repr(function)


@contextmanager
def code_in(folder: Path) -> Iterator[None]:
    """Say in one line, with file and line number, where code of a user's folder fails, or ends Python.

    What fails in this package's own folders is a fault of it, and stays a traceback.
    """
    try:
        yield
    except NeurouteError:
        raise
    except (Exception, SystemExit) as error:
        folder = folder.resolve()
        if folder.is_relative_to(PACKAGE):
            raise
        steps = [(step.filename, step.lineno) for step in traceback.extract_tb(error.__traceback__)]
        if isinstance(error, SyntaxError):
            steps.append((error.filename or "", error.lineno))
        own_steps = [(Path(file), line) for file, line in steps if Path(file).resolve().is_relative_to(folder)]
        place = "{}, line {}".format(*own_steps[-1]) if own_steps else str(folder)
        raise NeurouteError(f"{place}: {type(error).__name__}: {' '.join(str(error).split())}") from error


def search_working_folder() -> None:
    """Let modules be imported that lie in the working folder, which holds the Snakefile, after all others."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)


# Packages bring systems (`neuroute.systems`), commands (`neuroute.commands`) and blocks of config.yaml
# (`neuroute.config`) by entry points.  Of this repository's own: command, block and module -> folder.
BESIDE = {"compare": "extras/compare"}


def how_to_get(name: str) -> str:
    """Say how to install what comes with another package of this repository."""
    return f"comes with a package of its own; install it: pip install -e {BESIDE[name]}"


@cache
def entries(group: str) -> dict[str, EntryPoint]:
    """Name of each entry point of a group -> itself.  Raises NeurouteError if two have a name."""
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        if (other := found.setdefault(point.name, point).value) != point.value:
            raise NeurouteError(f"{group} '{point.name}': both {other} and {point.value} are installed")
    return found


def load(point: EntryPoint) -> Any:
    """Return what an entry point names.  Raises NeurouteError, in one line, if its package fails."""
    try:
        return point.load()
    except Exception as error:  # whatever another package raises
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise NeurouteError(
            f"{point.value} cannot be imported ({why}); install its package anew, or uninstall it"
        ) from None


@cache
def packages() -> dict[str, str]:
    """Name of each system that is installed -> its package.  Raises NeurouteError if two have a name."""
    return {name: point.value for name, point in entries("neuroute.systems").items()}


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
