"""What MvMoe's arguments mean, without building it: where its experts are, and what it reads of a variant."""

from collections.abc import Sequence
from typing import NamedTuple

from neuroute.problems.vrp import Switches, Variant

ALL = "all"  # inputs: whatever the variant
POSITIONS = ("enc", "dec")  # as published


class Inputs(NamedTuple):
    windows: bool  # whether customers come with theirs
    columns: list[int]  # columns of load, time, length, open that a decision reads


def inputs_of(name: str) -> Inputs:
    """Raises NeurouteError for a name that is neither "all" nor a variant's."""
    on = Switches(open=True, limit=True, windows=True) if name == ALL else Variant(name).switches
    return Inputs(on.windows, [0] + [1] * on.windows + [2] * on.limit + [3] * on.open)


def places(positions: Sequence[str], depth: int) -> set[str]:
    """ "raw", "dec" and "enc0", "enc1", ... that are meant; "enc" is all of these.

    Raises ValueError for a position that is not there.
    """
    layers = [f"enc{number}" for number in range(depth)]
    members = {name: [name] for name in ("raw", "dec", *layers)} | {"enc": layers}
    strange = sorted(set(positions) - set(members))
    if strange:
        raise ValueError(f"no position '{strange[0]}' for experts; there are {', '.join(members)}")
    return {place for name in positions for place in members[name]}
