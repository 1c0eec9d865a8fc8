"""Say in one line, and exit, if this Python or machine is none that neuroute installs on.  Runs on any Python 3."""

import platform
import sys

PYTHONS = ((3, 11), (3, 12), (3, 13))
# Where torch has wheels of the pinned release.
MACHINES = (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"))


def fault(python: tuple, system: str, machine: str) -> str:
    """Return what is wrong with a Python (major, minor) on a system and machine, and how to mend it; "" if nothing."""
    if python not in PYTHONS:
        return f"Python 3.11, 3.12 or 3.13 is needed, this is {python[0]}.{python[1]}; run: make PYTHON=python3.12"
    if (system, machine) not in MACHINES:
        return (
            f"Linux (x86_64, aarch64) or macOS (arm64) is needed, this is {system} on {machine}, for which torch has "
            "no current build; docs/machines.md lists what serves"
        )
    return ""


if __name__ == "__main__":
    reason = fault(sys.version_info[:2], sys.platform, platform.machine())
    sys.exit(f"error: {reason}" if reason else 0)
