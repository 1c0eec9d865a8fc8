"""The package's source: which version made something, wherever it is used from, and what of a checkout goes along.

setup.py imports it, where no other package is.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from neuroute.core.digest import code_folders

# What of a checkout a folder to work in needs; setup.py puts it into wheels.
PARTS = ("Snakefile", "config.yaml", "config", "environment.yml", "workflow", "profiles", "docs/examples")


PACKAGE = Path(__file__).resolve().parents[1]


@cache
def source() -> dict[str, Any]:
    """Return version, commit and whether the source was edited since (dirty), of the package that runs.

    The source is the package and, of its repository, the code of systems and papers.  commit
    and dirty are None where nothing tells them, as in a wheel of an index, whose version says it all.
    """
    try:
        package = distribution("neuroute")
        version, origin = package.version, json.loads(package.read_text("direct_url.json") or "{}")  # PEP 610
    except PackageNotFoundError:
        version, origin = None, {}
    commit, dirty = _checkout(PACKAGE)
    if commit is None and "site-packages" in PACKAGE.parts:  # as pip has cloned it
        commit = origin.get("vcs_info", {}).get("commit_id")
        dirty = False if commit else None
    return {"version": version, "commit": commit, "dirty": dirty}


def short_commit(of: Mapping[str, Any]) -> str | None:
    """The commit of a source: 7a5ee4d7, or "7a5ee4d7 with uncommitted changes"; None if unknown."""
    return f"{of['commit'][:8]}{' with uncommitted changes' if of['dirty'] else ''}" if of["commit"] else None


def _checkout(folder: Path) -> tuple[str | None, bool | None]:
    """Commit of the repository that tracks a folder, and whether its code differs from it; None twice without one.

    A repository around the folder that does not track it, as around a virtual environment, tells nothing.
    """
    if _git(folder, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None, None
    top = Path((_git(folder, "rev-parse", "--show-toplevel") or "").strip())
    code = [str(each) for each in code_folders() if each.is_relative_to(top)]
    lines = (_git(folder, "status", "--porcelain=v2", "--branch", "--", ".", *code) or "").splitlines()
    commits = [line.split()[-1] for line in lines if line.startswith("# branch.oid ")]
    if not commits or commits[0] == "(initial)":
        return None, None
    return commits[0], any(not line.startswith("#") for line in lines)


def _git(folder: Path, *arguments: str) -> str | None:
    """What a command of git prints about the folder; None if it fails, or there is no git."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
