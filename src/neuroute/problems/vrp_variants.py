"""The 16 vehicle routing problems of MVMoE (Zhou et al., 2024, Table 3): four switches on top of the CVRP, by name.

Any combination of the switches is a problem; nothing here, nor in the environment, is made for one of them.
"""

from difflib import get_close_matches
from itertools import product
from typing import NamedTuple

from neuroute.core.errors import NeurouteError


class Switches(NamedTuple):
    """What holds besides the capacity."""

    open: bool = False  # O: a vehicle does not drive home
    backhaul: bool = False  # B: some customers have goods to be picked up
    limit: bool = False  # L: no route is longer than a limit
    windows: bool = False  # TW: service takes time, and begins within a window


def _name(switches: Switches) -> str:
    extras = ("B" * switches.backhaul) + ("L" * switches.limit) + ("TW" * switches.windows)
    return "O" * switches.open + "VRP" + extras if any(switches) else "CVRP"


SWITCHES: dict[str, Switches] = {_name(s): s for s in (Switches(*on) for on in product((False, True), repeat=4))}


class Variant(str):
    """The name of a variant.  Raises NeurouteError, with the names that are near, for any other text."""

    __slots__ = ()

    def __new__(cls, name: str) -> "Variant":
        if name not in SWITCHES:
            near = get_close_matches(str(name).upper(), SWITCHES, n=3, cutoff=0.5)
            meant = f"is {' or '.join(near)} meant?  All" if near else "all"
            raise NeurouteError(f"no routing problem '{name}'; {meant}: {', '.join(SWITCHES)}")
        return super().__new__(cls, name)

    @property
    def switches(self) -> Switches:
        return SWITCHES[self]


def variant_of(switches: Switches) -> Variant:
    """The variant in which these hold."""
    return Variant(_name(switches))
