"""Resolve the pins for each Python and machine into docs/machines.md: `python docs/generate/machines.py`.

It needs the network and uv (`pip install uv`), which reads environment markers as the other machine would; nothing is
installed.  Wheels only: what has none for a machine would have to be compiled there.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "machines.md"
BEGIN, END = "<!-- drawn by docs/generate/machines.py -->\n", "<!-- end of the tables -->"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = {  # what uv calls it
    "Linux x86-64, glibc 2.34": "x86_64-manylinux_2_34",
    "Linux ARM64, glibc 2.34": "aarch64-manylinux_2_34",
    "macOS 14, Apple silicon": "aarch64-apple-darwin",
    "macOS 14, Intel": "x86_64-apple-darwin",
}
PLAIN = "connection-pool"  # pure Python without a wheel, which every machine builds without a compiler
SOLVERS = {
    "Concorde": "ml4co-kit",
    "LKH": "elkai",
    "LKH-3": "LKHpy",
    "HGS": "hygese",
    "PyVRP": "pyvrp",
    "OR-Tools": "ortools",
}


def resolve(python: str, machine: str, *what: str, text: str = "") -> list[str] | None:
    """Return the pins that a Python on a machine would install; None, with uv's reason on stderr, if it cannot."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
    command += ["--only-binary", ":all:", "--no-binary", PLAIN, "--constraint", "constraints.txt"]
    command += ["--python-version", python, "--python-platform", MACHINES[machine], *what]
    place = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"}
    done = subprocess.run(command, cwd=ROOT, env=place, input=text, capture_output=True, text=True, timeout=600)
    if done.returncode:
        print(f"{machine}, Python {python}, {text or 'all'}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return done.stdout.split("\n")[:-1]


def resolves(python: str, machine: str) -> str:
    """Say whether neuroute and what its tests need resolve; the pins that are none of ours count as unpinned."""
    pins = resolve(python, machine, "pyproject.toml", "--extra", "dev")
    return "no" if pins is None else f"{sum('==' in pin for pin in pins)} packages"


def solvers(python: str, machine: str) -> str:
    """List the solvers with a wheel."""
    found = [name for name, package in SOLVERS.items() if resolve(python, machine, "--no-deps", "-", text=package)]
    return ", ".join(found) if len(found) < len(SOLVERS) else "all"


def table(title: str, cell) -> str:  # type: ignore[no-untyped-def]
    """Draw machines down and Pythons across."""
    head = f"| {title} | {' | '.join(PYTHONS)} |\n|---|{'---|' * len(PYTHONS)}\n"
    return head + "".join(f"| {m} | {' | '.join(cell(p, m) for p in PYTHONS)} |\n" for m in MACHINES)


if __name__ == "__main__":
    drawn = table("neuroute with its tests", resolves) + "\n" + table("wheels of solvers", solvers)
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{drawn}{END}{rest.split(END)[1]}")
    print(drawn)
