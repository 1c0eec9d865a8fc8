"""What paper `sit` claims, and how it is looked at here."""

from __future__ import annotations

from neuroute.papers.sit import roles
from neuroute.papers.sit.roles import SIZES, run_id
from neuroute.papers.sit.tables_efficiency import HELD, exponent
from neuroute.rendering.cells import number, printed_numbers
from neuroute.rendering.claims import Finding, Side, printed_difference, slope_interval
from neuroute.rendering.study import Study


def time_grows_slowly(study: Study) -> Finding:
    """Compare exponents of n in the time of a greedy solution with LEHD's, over the sizes that both solve."""
    nodes = {size: roles.efficiency(study.scale, "tsp", size).n for size in SIZES}

    def here(network: str) -> dict[int, float]:
        cells = {size: (run_id("tsp_1k"), roles.efficiency(study.scale, "tsp", size)) for size in SIZES}
        values = {size: study.value("time_s", *cell, f"efficiency-{network}") for size, cell in cells.items()}
        return {nodes[size]: value for size, value in values.items() if value}

    def in_print(method: str) -> dict[int, float]:
        values = {size: number(printed_numbers(study, 4, method=method), size, "time_s") for size in SIZES}
        return {size: value for size, value in values.items() if isinstance(value, float)}

    (lehd, ours), in_prints = (here(f"LEHD{HELD}"), here("SIT")), (in_print("LEHD"), in_print("Ours"))
    both, both_printed = sorted(lehd.keys() & ours.keys()), sorted(in_prints[0].keys() & in_prints[1].keys())
    sides = (
        Side("LEHD", _exponent(lehd, both), _exponent(in_prints[0], both_printed)),
        Side("Ours", _exponent(ours, both), _exponent(in_prints[1], both_printed)),
    )
    ratios = [lehd[n] / ours[n] for n in both]
    at = f"TSPs of {', '.join(f'{n:,}' for n in both)} nodes, one instance each" if both else "no size that both solve"
    return Finding(
        "LEHD less Ours: exponent of n in the time of a greedy solution",
        slope_interval(both, ratios, printed_difference(*sides)),
        sides,
        "sizes (Student's t of the slope)",
        at,
        busy=study.busy(),
    )


def _exponent(times: dict[int, float], sizes: list[int]) -> float | None:
    return exponent(sizes, [times[n] for n in sizes])
