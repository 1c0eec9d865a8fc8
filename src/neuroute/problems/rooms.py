"""What each problem brings to the stages that all problems share, by dotted name.

`<problem>_rooms.py` lists it.  The names keep the problems apart: an edit of one problem's code, or a new problem,
reruns nothing of another's.  A code digest of a stage takes the `entries` of the problems at hand besides its own.
"""

from collections.abc import Iterable
from typing import Any

from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError


def room(problem: str, name: str) -> Any:
    """What a problem brings under that name.  Raises NeurouteError for a problem, or a name, that there is not."""
    return resolve(_entry(problem, name))


def entries(problems: Iterable[str], *names: str) -> list[str]:
    """Dotted names for `code_digest`."""
    return [_entry(problem, name) for problem in sorted(set(problems)) for name in names]


def _entry(problem: str, name: str) -> str:
    names: Any = resolve(f"neuroute.problems.{problem}_rooms:ROOMS")
    if name not in names:
        raise NeurouteError(f"problem '{problem}' has no '{name}' yet; it has {', '.join(names)}")
    return names[name]
