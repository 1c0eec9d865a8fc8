"""Rows of other authors' networks in the comparisons of paper `sit`, and what is to be said of them."""

from collections.abc import Mapping, Sequence

from neuroute.papers.sit import roles
from neuroute.papers.sit.roles import BASELINES, POMO_SIZES
from neuroute.plan.objects import Problem
from neuroute.rendering.columns import joined
from neuroute.rendering.grid import Method
from neuroute.rendering.study import Study

AUGMENTED = {"decoding": "multistart_greedy"}


def glop(problem: Problem, sizes: Sequence[int]) -> Method:
    """GLOP on random insertion, GLOP-G with LKH on its routes."""
    if problem == "tsp":
        return Method("GLOP", {"method": "GLOP"}, runs=dict.fromkeys(sizes, roles.GLOP), decoding=roles.REVISED)
    name, runs = "GLOP-G (LKH3)", {size: roles.GLOP_G[size] for size in sizes}
    return Method(name, {"method": name}, runs=runs, decoding=roles.PARTED)


def pomo(problem: Problem, sizes: Sequence[int]) -> Method:
    run, how = roles.POMO_RUNS[problem], {"method": "POMO"} | AUGMENTED
    return Method("POMO aug×8", how, runs=dict.fromkeys(sizes, run), decoding=roles.AUGMENTED)


def elg(problem: Problem) -> Method:
    runs = dict.fromkeys(POMO_SIZES, roles.ELG[problem])
    return Method("ELG aug×8", {"method": "ELG"} | AUGMENTED, runs=runs, decoding=roles.AUGMENTED)


def invit(problem: Problem, sizes: Sequence[int]) -> Method:
    """One image, one start: its decisions cost the same at any size."""
    how = {"method": "INViT-3V", "decoding": "greedy"}
    return Method("INViT-3V greedy", how, runs=dict.fromkeys(sizes, roles.INVIT[problem]))


def greedy(problem: Problem, sizes: Sequence[int]) -> list[Method]:
    """Greedy decoding of the baselines that are trained here, at these of the paper's sizes."""
    return [
        Method(f"{name} greedy", {"method": name, "decoding": "greedy"}, runs=dict.fromkeys(sizes, run))
        for name, run in ((name, BASELINES[problem][name]) for name in ("LEHD", "BQ", "SIGD"))
    ]


def _trained_on(study: Study, runs: Mapping[Problem, str]) -> str:
    """The problems and sizes that these runs are trained on here."""
    return joined(f"{p.upper()}{study.runs[run].n}" for p, run in runs.items() if run in study.runs)


def pomo_note(study: Study) -> str:
    sizes = _trained_on(study, roles.POMO_RUNS)
    return f"POMO is trained as its authors do{f' (on {sizes})' if sizes else ''} and starts from every node."


def elg_note(study: Study) -> str:
    sizes = _trained_on(study, roles.ELG)
    if not sizes:
        return "ELG is as printed."
    return (
        f"ELG is trained by its own recipe (on {sizes}) and starts from every node; its published code starts "
        "from 100, to which the printed times are nearer than to 1,000."
    )


def invit_note(study: Study) -> str:
    sizes = _trained_on(study, roles.INVIT)
    if not sizes:
        return "INViT is as printed."
    return (
        f"INViT is trained by its own recipe (on {sizes}) and decodes one image, of the TSP from one random "
        "node; its authors take the best of several images."
    )


def glop_note(study: Study, *problems: Problem) -> str:
    """How GLOP and GLOP-G are measured here, if they are."""
    if roles.GLOP not in study.runs:
        return "GLOP is as printed."
    arguments = study.runs[roles.GLOP].network.arguments
    blocks, shared = joined(str(block) for block in arguments["blocks"]), arguments.get("shared", False)
    note = f"GLOP revises random insertion in blocks of {blocks} nodes{' by one reviser' if shared else ''}."
    if "cvrp" in problems:
        sizes = dict.fromkeys(study.runs[run].n for run in roles.GLOP_G.values() if run in study.runs)
        note += f" GLOP-G is trained on CVRP{joined(str(n) for n in sizes)}; its routes are solved by LKH (elkai)."
    return note
