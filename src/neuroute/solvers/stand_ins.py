"""Which solver stands in for one that is missing."""

from neuroute.core.errors import NeurouteError
from neuroute.solvers.registry import get

# The best first.  Each solves whatever a scale asks of the one that it stands in for; OR-Tools has no equal.
NEXT_BEST = {
    "concorde": ("lkh", "lkh3", "hgs", "pyvrp", "ortools"),
    "concorde-6h": ("lkh", "lkh3"),
    "lkh": ("lkh3", "concorde", "hgs", "pyvrp", "ortools"),
    "lkh-long": ("lkh3", "concorde", "hgs", "pyvrp", "ortools"),
    "lkh3": ("pyvrp", "ortools"),
    "lkh3-short": ("pyvrp-short", "ortools-short"),
    "hgs": ("pyvrp", "ortools"),
    "hgs-short": ("pyvrp-short", "ortools-short"),
    "hgs-long": ("pyvrp", "ortools"),
    "hgs-timed": ("pyvrp", "ortools"),
    "pyvrp": ("ortools",),
    "pyvrp-long": ("ortools-x10",),
    "pyvrp-short": ("ortools-short",),
}


def is_installed(name: str) -> bool:
    try:
        get(name).version()
    except NeurouteError:
        return False
    return True


def stand_in(name: str) -> str | None:
    """Return the best installed solver that can do the work of another; None if there is none."""
    return next((other for other in NEXT_BEST.get(name, ()) if is_installed(other)), None)
