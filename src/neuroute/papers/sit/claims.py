"""What paper `sit` claims, and how it is looked at here."""

from __future__ import annotations

from neuroute.papers.sit import roles
from neuroute.papers.sit.roles import BASELINES, NO_SIT, SIZES, run_id
from neuroute.papers.sit.scale import SitScale
from neuroute.papers.sit.tables_efficiency import HELD, exponent
from neuroute.plan.claims import claim
from neuroute.rendering.cells import number, printed_numbers
from neuroute.rendering.claims import Finding, Side, gap_side, less, printed_difference, slope_interval
from neuroute.rendering.study import Study

FIGURES = ("figure1", "figure2", "figure3")


@claim(
    "Cross-attention has linear complexity: the time of a solution grows more slowly with its nodes.",
    where="abstract; Section 5, Table 4",
    artifact="table4",
)
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


@claim(
    "Self-improved training on large instances, without labels, beats training on small labelled ones.",
    where="abstract; Section 5, Table 3",
    artifact="table3",
)
def no_labels_needed(study: Study) -> Finding:
    """Compare greedy gaps at CVRP1K of the model trained by SIT and of the one trained on labelled CVRP100."""
    dataset = roles.reference(study.scale, "cvrp", 1000).dataset

    def side(method: str, name: str) -> Side:
        gap = number(printed_numbers(study, 3, method=method), 1000, "gap_pct")
        return gap_side(study, method, run_id(name), dataset, gap)

    return less(side("Ours", "cvrp_1k"), side("w/o SIT", NO_SIT), dataset, "greedy gap")


@claim(
    "With parallel re-construction the model is ahead of the best earlier neural solvers.",
    where="abstract; Section 5, Table 1",
    artifact="table1",
)
def ahead_of_others(study: Study) -> Finding:
    """Compare PRC1,000 at TSP1K with LEHD's random re-construction, which comes closest in print."""
    dataset = roles.reference(study.scale, "tsp", 1000).dataset
    s, rows = study.scale[SitScale], printed_numbers(study, 1, problem="TSP")
    prc, rrc = roles.prc_of(study.scale, "tsp", 1000), roles.search_of(study.scale, "LEHD")
    ours = number(rows[(rows.method == "Ours") & (rows.iters == 1000)], 1000, "gap_pct")
    other = number(rows[(rows.method == "LEHD") & (rows.decoding == "RRC")], 1000, "gap_pct")
    run = run_id(roles.model(study.scale, "tsp", 1000))
    return less(
        gap_side(study, f"Ours, PRC of {s.prc[1000]:,} iterations", run, dataset, ours, prc),
        gap_side(study, f"LEHD, RRC of {s.rrc:,}", BASELINES["tsp"]["LEHD"], dataset, other, rrc),
        dataset,
    )
