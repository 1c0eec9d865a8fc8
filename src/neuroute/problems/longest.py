"""The longest sub-path that training and re-construction take: l_max (sit, Section 5)."""

from neuroute.core.errors import NeurouteError

SHORTEST = 4  # stops of a sub-path
LONGEST = 1000  # and most, where nothing else is said


def longest_sub_path(longest: int | None, stops: int) -> int:
    """l_max for solutions of so many stops (TSP: nodes, CVRP: customers); None: LONGEST, or all stops of a shorter one.

    Raises NeurouteError for fewer than 4 stops, and for a stated number that is below 4 or above the stops there are.
    """
    if stops < SHORTEST:
        raise NeurouteError(f"sub-paths have {SHORTEST} stops or more, and there are {stops}: solve these greedily")
    if longest is None:
        return min(LONGEST, stops)
    if not SHORTEST <= longest <= stops:
        raise NeurouteError(
            f"sub-paths of at most {longest} of {stops} stops: give {SHORTEST} to {stops}, or none for "
            f"{min(LONGEST, stops)}"
        )
    return longest
