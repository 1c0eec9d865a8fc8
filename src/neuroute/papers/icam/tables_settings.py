"""Tables 4, 5 and 12 of paper `icam`: complexity, hyper-parameters, and the licences of codes and data."""

from neuroute.accounting.counts_many_starts import Icam, Pomo
from neuroute.papers.icam.hyper_parameters import ROWS, ReinforcedRun
from neuroute.papers.icam.roles import ORIGINAL, OWN, PROBLEMS, STAGED, run_id
from neuroute.papers.icam.scale import IcamScale
from neuroute.plan.needs import artifact
from neuroute.rendering.columns import AS_TRAINED, WHOLE, plain
from neuroute.rendering.licences import licence_table
from neuroute.rendering.settings import changes_note, printed_values, setting_rows
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table, Value

# -- Table 4 ----------------------------------------------------------------------------------------------------------

VARIANTS = ("Transformer", "AFT-full", "AFT-simple", "AFT-local", "AFT-conv")


@artifact("Time and space of attention and of AAFM")
def table4(study: Study) -> Table:
    """Complexity of attention and of its attention-free variants, and what is counted of those that are here."""
    published = dict(study.published(4)[["key", "value"]].astype(str).to_numpy())
    counted = _per_pair(study)
    rows = []
    for name in VARIANTS:
        time, space = (published[f"{name}.{what}"] for what in ("time", "space"))
        rows.append(Row((name,), (Cell(None, time), Cell(None, space), Cell(counted.get(name)))))
    columns = (
        Column("time", "Time", format=str),
        Column("space", "Space", format=str),
        Column("operations_per_pair", "Operations per pair of nodes and layer", "FLOPs", WHOLE),
    )
    shape = study.scale[IcamScale]
    return Table(
        study.artifact.title,
        ("Model",),
        columns,
        tuple(rows),
        (
            "N, d and s are the number of nodes, the width and the size of a local window. What is linear in N, as the "
            "projections and the FFN, O(N d^2), is left out in the paper.",
            "Counted here: what grows with the square of N in one encoder layer, a multiply-add being two operations, "
            f"at this scale's shapes: Transformer is POMO's layer (d = {shape.pomo.width}, heads: {shape.pomo.heads}), "
            f"AFT-full is AAFM (d = {shape.network.width}), AFT-simple is AFM, which has no bias for pairs of nodes. "
            "AFT-local and AFT-conv are not built here.",
            "The space O(N d) of AFT-full leaves out its bias. AAFM holds distances and weights, N^2 numbers of each "
            "instance that all channels share; a Transformer holds N^2 weights for each head, unless a fused kernel "
            "spares them.",
        ),
        "Counted here; the paper's entry in parentheses.",
    )


def _per_pair(study: Study) -> dict[str, float]:
    """FLOPs of one encoder layer for each pair of nodes: half the second difference in the number of nodes."""
    icam, pomo = study.scale[IcamScale].network, study.scale[IcamScale].pomo

    def attention(nodes: int) -> int:
        return Pomo(1, pomo.width, pomo.heads, pomo.feed_forward).encoder(nodes)

    def attention_free(nodes: int, adaptation: bool = True) -> int:
        return Icam(1, icam.width, icam.feed_forward, adaptation=adaptation).encoder(nodes)

    n = 100  # any will do: the counts are polynomials of degree two
    return {
        "Transformer": (attention(n + 1) - 2 * attention(n) + attention(n - 1)) / 2,
        "AFT-full": (attention_free(n + 1) - 2 * attention_free(n) + attention_free(n - 1)) / 2,
        "AFT-simple": sum(w * attention_free(n + i, False) for i, w in ((1, 1), (0, -2), (-1, 1))) / 2,
    }


# -- Table 5 ----------------------------------------------------------------------------------------------------------


@artifact("Training settings")
def table5(study: Study) -> Table:
    """Hyper-parameters of ICAM as configured here and printed; besides, of the two trainings of POMO."""
    published, columns, subjects, prefixes = printed_values(study), [], [], list[str]()
    for names, label in ((OWN, "ICAM"), (STAGED, "POMO, three stages"), (ORIGINAL, "POMO (original)")):
        for problem in PROBLEMS:
            columns.append(Column(names[problem], problem.upper(), format=plain, group=label))
            subjects.append(ReinforcedRun.of(study.runs.get(run_id(names[problem]))))
            prefixes.append(problem.upper() if names is OWN else "")

    def print_value(i: int, key: str) -> Value:
        """What both problems share, or a problem's own."""
        names = (f"both.{key}", f"{prefixes[i]}.{key}", f"{prefixes[i]}.{key}_max_norm") if prefixes[i] else ()
        return next((published[name] for name in names if name in published), None)

    return Table(
        study.artifact.title,
        ("Hyper-parameter",),
        tuple(columns),
        setting_rows(ROWS, subjects, print_value),
        (
            "Rows from 'Solutions of an instance' on and the columns of POMO are not in the paper's table; its two "
            "columns share most entries.",
            "N is drawn for each batch, both ends included. The brackets around the batch sizes of stages 2 and 3 are "
            "lost in the text that was at hand; the published code rounds down.",
            "Alpha: the published code has 14, the paper writes of one; all start at 1. Section 4 calls λ what this "
            "table calls k. Distances are multiplied by log2(N), of the CVRP with N customers without the depot, as "
            "in the published code.",
            "Adam's moments are kept from stage to stage, as in the published code.",
            *changes_note(study, study.runs.values()),
        ),
        AS_TRAINED,
    )


# -- Table 12 ---------------------------------------------------------------------------------------------------------


@artifact("Licences of the codes")
def table12(study: Study) -> Table:
    """The licences that the paper lists, and those of what is used here."""
    return licence_table(study, "table12", "What CVRPLIB allows is shown as the paper has it.")
