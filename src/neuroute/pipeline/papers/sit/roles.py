"""The models and test sets of paper `sit`, by the paper's own numbers, whatever they are at a scale."""

from collections.abc import Iterator
from functools import partial
from typing import ClassVar, Literal

from neuroute.pipeline.papers.sit.scale import SIZES as SIZES
from neuroute.pipeline.papers.sit.scale import TAM_SIZES as TAM_SIZES
from neuroute.pipeline.papers.sit.scale import SitProblem, SitScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, group_of
from neuroute.pipeline.rendering.columns import short as short
from neuroute.specs.decodings import REVISED_LIBRARY, Decoding, Start, beam_search, revise
from neuroute.specs.evaluations import Benchmark, RunEvaluation
from neuroute.specs.objects import BenchmarkEvaluation, Dataset, EfficiencyEvaluation, Labels, Network, Problem, Split

PAPER = "sit"
SCALING = "scaling"  # lends its baselines
PROBLEMS: tuple[Problem, ...] = ("tsp", "cvrp")
ABLATED = (1000, 5000, 10_000)  # Table 3
SMALL_SIZES = (300, 500, 700)  # Table 9
BQ_SIZES: tuple[Literal[1000], Literal[5000]] = (1000, 5000)  # Table 10
LONGEST = (100, 1000, 10_000)  # Table 5
# The paper's random insertion, as its code does it.
INITIAL: dict[Problem, Start] = {"tsp": "insertion", "cvrp": "insertion-published"}
BASELINES = {  # those of `scaling` where it has them
    "tsp": {"LEHD": f"{SCALING}/lehd_6x128", "BQ": f"{SCALING}/bq", "SIGD": f"{SCALING}/sigd"},
    "cvrp": {"LEHD": f"{SCALING}/lehd_cvrp", "BQ": f"{PAPER}/bq_cvrp", "SIGD": f"{PAPER}/sigd_cvrp"},
}
POMO_RUNS: dict[Problem, str] = {"tsp": "icam/pomo_tsp", "cvrp": "icam/pomo_cvrp"}  # as its authors train it
GLOP = "rivals/glop"
# The paper's size -> GLOP-G's partition; in print it is out of memory above.  0: CVRPLIB's.
GLOP_G = {1000: "rivals/glop_g", 5000: "rivals/glop_g_2k", 10_000: "rivals/glop_g_2k", 0: "rivals/glop_g_cvrplib"}
ELG: dict[Problem, str] = {"tsp": "rivals/elg_tsp", "cvrp": "rivals/elg_cvrp"}
ELG_NODES = 5000  # the largest instances of the libraries that it solved in print
HTSP = "rivals/htsp"
INVIT: dict[Problem, str] = {"tsp": "rivals/invit_3v", "cvrp": "rivals/invit_cvrp"}
DIFUSCO = "rivals/difusco"
# Of `rivals`, where the scale has them.
RIVALS: tuple[str, ...] = (*ELG.values(), DIFUSCO, GLOP, *dict.fromkeys(GLOP_G.values()), HTSP, *INVIT.values())
DIFUSCO_SIZES = (1000, 10_000)  # in print
POMO_SIZES = (1000, 5000)  # in print; out of memory above
GREEDY = Decoding()
AUGMENTED = Decoding(starts="all", augment=True)
SEARCHED = Decoding(method="edge_maps:tree_search")  # maps of edges
REVISED, PARTED = revise(), Decoding(method="glop:partition", solver="lkh")
GROWN = Decoding(method="htsp:grow")
SIT = {"tsp": "neuroute.networks.sit:Sit", "cvrp": "neuroute.networks.sit:SitCvrp"}
LEHD, BQ = "neuroute.networks.lehd:Lehd", "neuroute.networks.bq:Bq"
POMO = "neuroute.networks.pomo:Pomo"
BQ_CVRP = "neuroute.networks.bq:BqCvrp"
NO_SIT, SELF = "cvrp_no_sit", "cvrp_self"  # Table 3


group = partial(group_of, PAPER)  # (run, name of what is measured, if it is not tests) -> group


run_id = f"{PAPER}/{{}}".format  # name -> id


def model(scale: Scale, problem: Problem, size: int) -> str:
    """Name of the run whose model solves the paper's instances of that size at this scale."""
    return f"{problem}_{short(sizes(scale, problem).trained(size))}"


def control(problem: Problem) -> str:
    """Name of the run that trains as long as the main one, on the initial solutions (not in the paper)."""
    return f"control_{problem}"


def with_longest(longest: int) -> str:
    """Name of the run of Table 5 that is trained with that l_max; 1,000 is the main run."""
    return "tsp_10k" if longest == 1000 else f"tsp_10k_lmax{longest}"


def with_repetitions(count: int) -> str:
    """Name of the run of Figure 3 with so many repetitions of the last node."""
    return f"repeat{count}"


def with_cross_attention(size: int) -> str:
    """Name of the run of Table 10: BQ with cross-attention, trained by SIT."""
    return f"bq_cross_{short(size)}"


def sizes(scale: Scale, problem: Problem) -> SitProblem:
    return scale[SitScale].tsp if problem == "tsp" else scale[SitScale].cvrp


def reference(scale: Scale, problem: Problem, size: int) -> Labels:
    """The labelled test set that stands for the paper's TSP or CVRP of that size."""
    p = sizes(scale, problem)
    dataset = Dataset(problem=problem, split="test", n=p.sizes[size], count=p.test_counts[size])
    return scale.reference(dataset, p.references[size])


def validation(scale: Scale, problem: Problem, size: int) -> Labels:
    p = sizes(scale, problem)
    return _labels(problem, "val", p.sizes[size], p.validation_counts[size], p.references[size])


def training_labels(scale: Scale, problem: Problem, size: int, samples: int) -> Labels:
    """The initial solutions of a data set of self-improved training (sit, Algorithm 2)."""
    return _labels(problem, "train", sizes(scale, problem).sizes[size], samples, INITIAL[problem])


def _labels(problem: Problem, split: Split, n: int, count: int, solver: str) -> Labels:
    return Labels(dataset=Dataset(problem=problem, split=split, n=n, count=count), solver=solver)


def small(scale: Scale, problem: Problem, size: int) -> Labels:
    """Table 9's test set of that size."""
    p = sizes(scale, problem)
    capacity = scale[SitScale].cvrp.small_capacity if problem == "cvrp" else None
    dataset = Dataset(problem=problem, split="test", n=p.small_sizes[size], count=p.small_count, capacity=capacity)
    return scale.reference(dataset, p.small_reference)


def tam(scale: Scale, size: int) -> Labels:
    """Table 8's test set of that size."""
    c = scale[SitScale].cvrp
    dataset = Dataset(
        problem="cvrp", split="test", n=c.tam_sizes[size], count=c.tam_count, capacity=c.tam_capacities[size]
    )
    return scale.reference(dataset, c.tam_solver)


def efficiency(scale: Scale, problem: Problem, size: int) -> Dataset:
    """One instance whose construction is timed (Tables 3, 4 and 10)."""
    return Dataset(problem=problem, split="test", n=scale[SitScale].efficiency_sizes[size], count=1)


def prc(scale: Scale, problem: Problem) -> Decoding:
    """PRC from random insertion, with every budget of Table 1 on the way."""
    budgets = tuple(sorted(set(scale[SitScale].prc.values())))
    return Decoding(method="prc", start=INITIAL[problem], iterations=budgets[-1], milestones=(0, *budgets))


def prc_of(scale: Scale, problem: Problem, budget: int) -> Decoding:
    """One of these budgets."""
    return prc(scale, problem).model_copy(update={"iterations": scale[SitScale].prc[budget], "milestones": ()})


def search_of(scale: Scale, method: str) -> Decoding:
    """LEHD's random re-construct; the beams of the other baselines."""
    s = scale[SitScale]
    return Decoding(method="rrc", iterations=s.rrc, longest=s.rrc_longest) if method == "LEHD" else beam_search(s.beam)


def searched(scale: Scale, problem: Problem, method: str) -> list[int]:
    """The paper's sizes on which LEHD is run with random re-construct, the other baselines with beams."""
    most = scale[SitScale].rrc_max_nodes if method == "LEHD" else scale[SitScale].beam_max_nodes
    return [s for s in SIZES[:3] if sizes(scale, problem).sizes[s] <= most]


class RoundEvaluation(RunEvaluation):
    """A decoding state of the network and one iteration of re-construction on a real instance (sit, Figures 1, 2)."""

    entry: ClassVar[str] = "neuroute.pipeline.papers.sit.probe:measure"
    kind: Literal["round"] = "round"
    group: str = "round"
    dataset: Dataset
    decoding: Decoding
    decision: int  # of the state that is drawn

    def solved(self) -> Iterator[tuple[Dataset, Decoding]]:
        yield self.dataset, Decoding()
        yield self.dataset, self.decoding


def on_benchmark(scale: Scale, problem: Problem, run: str) -> BenchmarkEvaluation:
    """Table 2: TSPLIB or CVRPLIB, the paper's own models with PRC too."""
    least, most = sizes(scale, problem).benchmark_nodes
    name: Benchmark = "tsplib" if problem == "tsp" else "cvrplib"
    is_ours = run == run_id(f"{problem}_1k")
    return BenchmarkEvaluation(
        run=run,
        group=group(run, name),
        benchmark=name,
        min_nodes=least,
        max_nodes=most,
        names=scale.instances_of(name),
        decodings=(Decoding(), *([prc_of(scale, problem, 1000)] if is_ours else [])),
    )


def glop_on_benchmark(scale: Scale, problem: Problem) -> BenchmarkEvaluation:
    """Table 2: GLOP by its recipe for TSPLIB, GLOP-G by its partition of CVRPLIB."""
    run, how = (GLOP, REVISED_LIBRARY) if problem == "tsp" else (GLOP_G[0], PARTED)
    return on_benchmark(scale, problem, run).model_copy(update={"decodings": (how,)})


def elg_on_benchmark(scale: Scale, problem: Problem) -> BenchmarkEvaluation:
    """Table 2: from every node of all eight images, both axes scaled alike."""
    run = ELG[problem]
    all_of_it = on_benchmark(scale, problem, run)
    return all_of_it.model_copy(
        update={"max_nodes": min(ELG_NODES + 1, all_of_it.max_nodes), "decodings": (AUGMENTED,)}
    )


def search_on_benchmark(scale: Scale, problem: Problem, method: str) -> BenchmarkEvaluation:
    """Table 2: LEHD's random re-construct, or BQ's beams, on the instances that are not too large for them."""
    s, run = scale[SitScale], BASELINES[problem][method]
    all_of_it = on_benchmark(scale, problem, run)
    most = s.benchmark_rrc_nodes if method == "LEHD" else s.benchmark_beam_nodes
    return all_of_it.model_copy(
        update={
            "group": group(run, f"{all_of_it.benchmark}_search"),
            "max_nodes": min(most, all_of_it.max_nodes),
            "decodings": (search_of(scale, method),),
        }
    )


def efficiency_of(scale: Scale, problem: Problem) -> EfficiencyEvaluation:
    """Table 4 hangs on the TSP's main run, Tables 3 and 10 on the CVRP's; the weights are random."""
    s = scale[SitScale]
    shapes: dict[str, dict[str, object]] = {name: shape.model_dump() for name, shape in s.efficiency_shapes.items()}
    shapes["sit"] |= {"representatives": s.network.representatives}

    def network(kind: str, shape: str, **more: object) -> Network:
        return Network(kind=kind, arguments=shapes[shape] | more)

    tsp = {
        "POMO": network(POMO, "pomo"),
        "SIGD": network(BQ, "sigd"),
        "LEHD": network(LEHD, "lehd"),
        "SIT": network(SIT["tsp"], "sit"),
    }
    cvrp = {
        "SIT": network(SIT["cvrp"], "sit"),
        "self-attention": network(SIT["cvrp"], "sit", attention="self"),
        "BQ": network(BQ_CVRP, "bq"),
        "BQ+cross-attention": network(BQ_CVRP, "bq", attention="cross", representatives=s.network.representatives),
    }
    networks, sizes = (tsp, SIZES) if problem == "tsp" else (cvrp, ABLATED)
    return EfficiencyEvaluation(
        run=run_id(f"{problem}_1k"),
        networks=networks,
        datasets=tuple(efficiency(scale, problem, size) for size in sizes),
        decisions=s.efficiency_decisions,
    )


def round_needs(scale: Scale) -> list[Need]:
    """Figures 1 and 2: on an instance of the validation stream, with blocks short enough to be seen.

    The second one: of the first, at small sizes, random insertion leaves nothing to improve.
    """
    n = scale[SitScale].tsp.sizes[1000]
    decoding = prc_of(scale, "tsp", 50).model_copy(update={"longest": max(4, n // 4)})
    round_ = RoundEvaluation(
        run=run_id("tsp_1k"), dataset=Dataset(split="val", n=n, first=1, count=1), decoding=decoding, decision=n // 3
    )
    return [round_]
