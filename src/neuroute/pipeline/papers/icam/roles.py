"""The models and test sets of paper `icam`, by the paper's own numbers, whatever they are at a scale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from neuroute.core.lazy import torch
from neuroute.pipeline.papers.icam.scale import BETAS, KS, LARGE_SIZES, MAIN, SIZES, TAM_SIZES, IcamProblem, IcamScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need
from neuroute.pipeline.plan.papers import borrow_test_set
from neuroute.specs.decodings import revise
from neuroute.specs.evaluations import Measurement
from neuroute.specs.objects import BenchmarkEvaluation, Dataset, Decoding, Labels, Problem, beam_search

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["BETAS", "KS", "LARGE_SIZES", "MAIN", "SIZES", "TAM_SIZES"]
PAPER = "icam"
SCALING, SIT = "scaling", "sit"  # lend their baselines, and the TSP's test sets
PROBLEMS: tuple[Problem, ...] = ("tsp", "cvrp")
OWN: dict[Problem, str] = {"tsp": "icam_tsp", "cvrp": "icam_cvrp"}
ORIGINAL: dict[Problem, str] = {"tsp": "pomo_tsp", "cvrp": "pomo_cvrp"}  # POMO as its authors train it
STAGED: dict[Problem, str] = {"tsp": "pomo3_tsp", "cvrp": "pomo3_cvrp"}  # POMO in the three stages (Table 7)
ABLATIONS = {"AFM": "abl_afm", "AFM+CAB": "abl_afm_cab", "AAFM": "abl_aafm", "AAFM+CAB": OWN["tsp"]}  # Table 9
STAGES = ("stage1", "stage2")  # whose checkpoints are kept besides the last (Table 8)
OPTIMAL_SIZES = (100, 1000)  # Figure 1
BASELINES: dict[Problem, dict[str, str]] = {  # trained for other papers
    "tsp": {"LEHD": f"{SCALING}/lehd_6x128", "BQ": f"{SCALING}/bq"},
    "cvrp": {"LEHD": f"{SCALING}/lehd_cvrp", "BQ": f"{SIT}/bq_cvrp"},
}
GLOP, GLOP_G, GLOP_G_2K = "rivals/glop", "rivals/glop_g", "rivals/glop_g_2k"
ELG: dict[Problem, str] = {"tsp": "rivals/elg_tsp", "cvrp": "rivals/elg_cvrp"}
POINTERFORMER = "rivals/pointerformer"
HTSP = "rivals/htsp"
DIMES, DIMES_LARGE = "rivals/dimes", "rivals/dimes_large"
MDAM: dict[Problem, str] = {"tsp": "rivals/mdam_tsp", "cvrp": "rivals/mdam_cvrp"}
ATT_GCN, ATT_GCN_LARGE, DIFUSCO = "rivals/att_gcn", "rivals/att_gcn_large", "rivals/difusco"
MAPS = (ATT_GCN, ATT_GCN_LARGE, DIFUSCO, DIMES, DIMES_LARGE)
# Those that a scale has.
RIVALS = (*ELG.values(), POINTERFORMER, *MAPS, *MDAM.values(), HTSP, GLOP, GLOP_G, GLOP_G_2K)
Starts = Literal[1, "all"]
SINGLE = Decoding()
MULTI = Decoding(starts="all")
AUGMENTED = Decoding(starts="all", augment=True)
SEARCHED = Decoding(method="edge_maps:tree_search")  # maps of edges
MERGED = Decoding(method="edge_maps:merging")
REVISED, PARTED = revise(), Decoding(method="glop:partition", solver="lkh")  # GLOP, GLOP-G
GROWN = Decoding(method="htsp:grow")  # H-TSP
DECODERS = "mdam:decoders"  # MDAM's search


run_id = f"{PAPER}/{{}}".format  # name -> id


def at_stage(run: str, stage: str) -> str:
    """What the records of a stage's checkpoint are of; run: its name."""
    return f"{run_id(run)}@{stage}"


def fork(k: int, beta: float) -> str:
    """Name of the run of Table 10 whose third stage has these parameters."""
    return OWN["tsp"] if (k, beta) == MAIN else f"k{k}_b{beta:g}"


def sizes(scale: Scale, problem: Problem) -> IcamProblem:
    """How a problem is trained here."""
    return scale[IcamScale].tsp if problem == "tsp" else scale[IcamScale].cvrp


def reference(scale: Scale, problem: Problem, size: int) -> Labels:
    """The labelled test set that stands for the paper's TSP or CVRP of that size; the TSP's are those of `scaling`."""
    if problem == "tsp":
        return borrow_test_set(scale, SCALING, size)
    c = scale[IcamScale].cvrp
    dataset = Dataset(problem="cvrp", split="test", n=c.sizes[size], count=c.test_counts[size])
    return scale.reference(dataset, c.references[size])


def solved(scale: Scale, problem: Problem, size: int) -> tuple[Labels, ...]:
    """A test set as each solver that is run on it solves it, the reference first."""
    first = reference(scale, problem, size)
    others = sizes(scale, problem).other_solvers.get(size, [])
    return (first, *(Labels(dataset=first.dataset, solver=solver) for solver in others))


def validation(scale: Scale, problem: Problem, size: Literal[100, 1000]) -> Labels:
    """Training logs gaps on the smallest and the largest size (icam, the published code)."""
    test = reference(scale.without_test_files, problem, size)
    change = {"split": "val", "count": sizes(scale, problem).validation_counts[size]}
    return Labels(dataset=test.dataset.model_copy(update=change), solver=test.solver)


def large(scale: Scale, size: int) -> Labels:
    """Table 6's test set of that size."""
    i = scale[IcamScale]
    dataset = Dataset(split="test", n=i.large_sizes[size], count=i.large_counts[size])
    return scale.reference(dataset, i.large_solver)


def tam(scale: Scale, size: int) -> Labels:
    """Table 3's test set of that size."""
    c = scale[IcamScale].cvrp
    dataset = Dataset(
        problem="cvrp", split="test", n=c.tam_sizes[size], count=c.tam_counts[size], capacity=c.tam_capacities[size]
    )
    return scale.reference(dataset, c.tam_solver)


def rrc(scale: Scale, starts: Starts = 1) -> Decoding:
    """Table 11: RRC100 of a baseline or, with `starts`, ICAM's, which begins with the best of all starts."""
    return Decoding(method="rrc", iterations=scale[IcamScale].rrc, starts=starts)


def beam(scale: Scale, starts: Starts = 1) -> Decoding:
    """Table 11: beams of 16; ICAM's search from all starts."""
    return beam_search(scale[IcamScale].beam).model_copy(update={"starts": starts})


def decoder_beams(scale: Scale) -> Decoding:
    """MDAM's search."""
    return Decoding(method=DECODERS, beam=scale[IcamScale].decoder_beam)


def searched(scale: Scale, method: Literal["rrc", "beam"]) -> list[int]:
    """The paper's sizes on which random re-construct, or beams, are run here (Table 11)."""
    most = scale[IcamScale].rrc_max_nodes if method == "rrc" else scale[IcamScale].beam_max_nodes
    return [size for size in SIZES if reference(scale, "tsp", size).dataset.n <= most]


class StructureEvaluation(Measurement):
    """What drawings of a network of many starts need: its modules, and a decision on a real instance (icam).

    With `optimal` also what optimal tours choose at these sizes (Figure 1).
    """

    entry: ClassVar[str] = "neuroute.pipeline.papers.icam.probe:measure"
    kind: Literal["structure"] = "structure"
    name: str = "structure"
    dataset: Dataset  # one instance
    decision: int  # of the state that is drawn
    optimal: tuple[Labels, ...] = ()

    @property
    def reads(self) -> tuple[Labels, ...]:
        return self.optimal

    def solved(self) -> Iterator[tuple[Dataset, Decoding]]:
        yield self.dataset, Decoding()


def on_set_x(scale: Scale, run: str) -> BenchmarkEvaluation:
    """Table 2: from many starts where a model has them; POMO and ICAM have each axis scaled by itself."""
    least, below = scale[IcamScale].cvrp.benchmark_nodes
    is_ours = run.startswith(f"{PAPER}/")
    return BenchmarkEvaluation(
        run=run,
        name="cvrplib",
        benchmark="cvrplib",
        min_nodes=least,
        max_nodes=below,
        sets=("X",),
        names=scale.instances_of("cvrplib"),
        decodings=(MULTI if is_ours or run in ELG.values() else SINGLE,),
        per_axis=is_ours,
    )


def structure(scale: Scale, run: str) -> StructureEvaluation:
    """An instance of the validation stream, a third of the way; for ICAM's Figure 1 optimal tours too."""
    n = reference(scale, "tsp", 100).dataset.n
    is_main = run == run_id(OWN["tsp"])
    optimal = tuple(reference(scale, "tsp", size) for size in OPTIMAL_SIZES) if is_main else ()
    return StructureEvaluation(run=run, dataset=Dataset(split="val", n=n, count=1), decision=n // 3, optimal=optimal)


def structure_needs(scale: Scale) -> list[Need]:
    """Of the drawings of ICAM for the TSP."""
    return [structure(scale, run_id(OWN["tsp"]))]


LEVELS = np.linspace(0, 1, 201)  # of the quantiles that are kept
SHARE = 0.95  # of the choices, that lie in the region of preferred nodes
RANKS = 20  # the last one counts all ranks from there on
PAIRS = 1 << 24  # distances that are held at the same time


@dataclass(frozen=True)
class Selections:
    """What all decisions of some tours have in common; the last stop and the way back are chosen by no one."""

    quantiles: np.ndarray  # (levels,) of the distance to the chosen node
    ranks: np.ndarray  # (RANKS,) int64: decisions by the chosen node's rank among the nodes that are left, from 1
    radius: float  # within which `SHARE` of the chosen nodes lie
    within: float  # mean number of other nodes that lie so near, visited or not

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Named for an .npz."""
        values = {"quantiles": self.quantiles, "ranks": self.ranks, "radius": self.radius, "within": self.within}
        return {f"{key}_{name}": np.asarray(value) for key, value in values.items()}


def selections(coords: Tensor, tours: Tensor) -> Selections:
    """coords (count, n, 2) and tours (count, n) int64 on the CPU, n >= 3.

    Nodes as far away as the chosen one share its rank.
    """
    count, n = tours.shape
    most = max(n, RANKS) + 1
    ranks, distances = torch.zeros(most, dtype=torch.int64), torch.empty(count, n - 2, dtype=torch.float64)
    at_once = max(1, PAIRS // n**2)
    later = torch.ones(n - 2, n).triu(2).bool()  # what is left at each decision, but for the chosen node
    paths = coords.double().gather(1, tours[..., None].expand(-1, -1, 2))
    for first in range(0, count, at_once):
        apart = _apart(paths[first : first + at_once])
        steps = apart[:, : n - 2].diagonal(1, 1, 2)
        distances[first : first + at_once] = steps
        nearer = (apart[:, : n - 2] < steps[..., None]) & later
        ranks += torch.bincount(nearer.sum(-1).flatten() + 1, minlength=most)
    radius = float(np.quantile(distances.numpy(), SHARE))
    inside = sum(int((_apart(part) <= radius).sum()) - part.shape[0] * n for part in paths.split(at_once))
    quantiles = np.quantile(distances.numpy(), LEVELS).astype(np.float64)
    by_rank = np.append(ranks[1:RANKS].numpy(), ranks[RANKS:].sum().item())
    return Selections(quantiles, by_rank, radius, inside / (count * n))


def _apart(paths: Tensor) -> Tensor:
    """paths (count, n, 2) -> distances (count, n, n), exact on the diagonal."""
    return torch.cdist(paths, paths, compute_mode="donot_use_mm_for_euclid_dist")
