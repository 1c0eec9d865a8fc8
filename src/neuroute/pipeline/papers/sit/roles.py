"""The models and test sets of paper `sit`, by the paper's own numbers, whatever they are at a scale."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from neuroute.pipeline.papers.sit.scale import SIZES as SIZES
from neuroute.pipeline.papers.sit.scale import TAM_SIZES as TAM_SIZES
from neuroute.pipeline.papers.sit.scale import SitProblem, SitScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, tested
from neuroute.pipeline.rendering.cells import ONE_SEED, references_by_problem
from neuroute.pipeline.rendering.columns import joined
from neuroute.pipeline.rendering.columns import short as short
from neuroute.pipeline.rendering.grid import Method
from neuroute.pipeline.rendering.study import Study
from neuroute.specs.decodings import REVISED_LIBRARY, Decoding, Start, beam_search, revise
from neuroute.specs.evaluations import Benchmark, Measurement, Test
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


class RoundEvaluation(Measurement):
    """A decoding state of the network and one iteration of re-construction on a real instance (sit, Figures 1, 2)."""

    entry: ClassVar[str] = "neuroute.pipeline.papers.sit.probe:measure"
    kind: Literal["round"] = "round"
    name: str = "round"
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
        name=name,
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
            "name": f"{all_of_it.benchmark}_search",
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


SOLVERS: dict[Problem, dict[str, Method]] = {
    "tsp": {
        "LKH3": Method(solvers=("lkh", "lkh-long", "lkh3")),
        "Concorde": Method(solvers=("concorde", "concorde-6h")),
        "Random Insertion": Method(solvers=(INITIAL["tsp"],)),
    },
    "cvrp": {
        "HGS": Method(solvers=("hgs-timed", "hgs", "hgs-short")),
        "LKH3": Method(solvers=("lkh3",)),
        "Random Insertion": Method(solvers=(INITIAL["cvrp"],)),
    },
}


def baselines(scale: Scale, problem: Problem) -> dict[str, Method]:
    """Other networks in Tables 1 and 9, by label, at the sizes at which they are run here."""

    def at(run: str, sizes: Iterable[int], decoding: Decoding = GREEDY) -> Method:
        return Method(runs=dict.fromkeys(sizes, run), decoding=decoding)

    of, greedy_sizes = BASELINES[problem], (*SMALL_SIZES, *SIZES[:3])
    partitions = {size: GLOP_G[size] for size in SIZES[:3]}
    return {
        "GLOP": Method(runs=GLOP, decoding=REVISED),
        "GLOP-G (LKH3)": Method(runs=partitions, decoding=PARTED),
        "DIFUSCO": at(DIFUSCO, DIFUSCO_SIZES, SEARCHED),
        "H-TSP": at(HTSP, (*SMALL_SIZES, *SIZES[:3]), GROWN),  # out of memory above, in print
        "POMO aug×8": at(POMO_RUNS[problem], (*SMALL_SIZES, *POMO_SIZES), AUGMENTED),
        "ELG aug×8": at(ELG[problem], POMO_SIZES, AUGMENTED),
        "INViT-3V greedy": Method(runs=INVIT[problem]),  # one image and start: it costs the same at any size
        **{f"{name} greedy": at(run, greedy_sizes) for name, run in of.items()},
        **{
            label: at(of[name], searched(scale, problem, name), search_of(scale, name))
            for label, name in SEARCHES.items()
        },
    }


SEARCHES = {"LEHD RRC1,000": "LEHD", "BQ bs16": "BQ", "SIGD bs16": "SIGD"}


def ours(scale: Scale, problem: Problem, runs: str | Mapping[int, str]) -> dict[str, Method]:
    """SIT, greedy and with PRC."""
    return {
        "Ours greedy": Method(runs=runs),
        **{
            f"Ours PRC{budget:,}": Method(runs=runs, decoding=prc_of(scale, problem, budget))
            for budget in scale[SitScale].prc
        },
    }


def _trained_on(study: Study, runs: Mapping[Problem, str]) -> str:
    """The problems and sizes that these runs are trained on here."""
    return joined(f"{p.upper()}{study.runs[run].n}" for p, run in runs.items() if run in study.runs)


def pomo_note(study: Study) -> str:
    sizes = _trained_on(study, POMO_RUNS)
    return f"POMO is trained as its authors do{f' (on {sizes})' if sizes else ''} and starts from every node."


def elg_note(study: Study) -> str:
    sizes = _trained_on(study, ELG)
    if not sizes:
        return "ELG is as printed."
    return (
        f"ELG is trained by its own recipe (on {sizes}) and starts from every node; its published code starts "
        "from 100, to which the printed times are nearer than to 1,000."
    )


def invit_note(study: Study) -> str:
    sizes = _trained_on(study, INVIT)
    if not sizes:
        return "INViT is as printed."
    return (
        f"INViT is trained by its own recipe (on {sizes}) and decodes one image, of the TSP from one random "
        "node; its authors take the best of several images."
    )


def difusco_note(study: Study) -> str:
    if DIFUSCO not in study.runs:
        return "DIFUSCO is as printed: *, by its authors."
    return (
        f"DIFUSCO is trained by its own recipe (on TSP{study.runs[DIFUSCO].n}); its printed rows (*) are its "
        "authors', and fit its tree search, which at 10K is around the 2-opt tour in its code, on the map here."
    )


def htsp_note(study: Study) -> str:
    """How H-TSP is measured here, if it is."""
    if HTSP not in study.runs:
        return "H-TSP is as printed."
    run = study.runs[HTSP]
    fragment, added = (run.network.arguments[name] for name in ("fragment", "added"))
    return f"H-TSP is trained on TSP{run.n}: {added} nodes join a tour at a time, ordered in fragments of {fragment}."


def glop_note(study: Study, *problems: Problem) -> str:
    """How GLOP and GLOP-G are measured here, if they are."""
    if GLOP not in study.runs:
        return "GLOP is as printed."
    arguments = study.runs[GLOP].network.arguments
    shared = arguments.get("shared", False)
    blocks = joined(str(block) for block in arguments["blocks"][:3])  # a fourth is for instances of the first's size
    note = f"GLOP revises random insertion in blocks of {blocks} nodes{' by one reviser' if shared else ''}."
    if "cvrp" in problems:
        sizes = dict.fromkeys(study.runs[run].n for run in GLOP_G.values() if run in study.runs)
        note += f" GLOP-G is trained on CVRP{joined(str(n) for n in sizes)}; its routes are solved by LKH (elkai)."
    return note


def prc_words(study: Study, budget: int = 100) -> str:
    """Name a search: PRC100, or `PRC100 (10 iterations here)`."""
    here = study.scale[SitScale].prc[budget]
    return f"PRC{budget:,}" + ("" if here == budget else f" ({here:,} iterations here)")


def reference_note(study: Study, problems: Sequence[Problem], sizes: Sequence[int] = SIZES) -> str:
    """Say against whose solutions the gaps are, by size."""
    tests = {p: {size: reference(study.scale, p, size) for size in sizes} for p in problems}
    return references_by_problem(tests, {"tsp": "LKH3", "cvrp": "HGS"}, lambda size: short(size).upper())


def models_note(study: Study, problems: Iterable[Problem]) -> str:
    """Say at which of the paper's sizes models are trained here, and what solves the others."""
    parts, missing = [], False
    for problem in problems:
        p = sizes(study.scale, problem)
        trained = [f"{short(size).upper()} ({problem.upper()}{p.sizes[size]} here)" for size in p.training]
        parts.append(f"{problem.upper()} at {', '.join(trained)}")
        missing |= len(p.training) < len(SIZES)
    rest = "; a size without a model of its own takes that of the next smaller one" if missing else ""
    return f"{ONE_SEED} Ours is trained for {'; '.join(parts)}{rest}."


def in_one_go(needs: Callable[[Scale], Iterable[Need]]) -> Callable[[Scale], Iterator[Need]]:
    """Measure all budgets of PRC along one search with the largest."""

    def merged(scale: Scale) -> Iterator[Need]:
        for need in needs(scale):
            if isinstance(need, Test):
                problem = need.labels.dataset.problem
                if need.decoding in [prc_of(scale, problem, budget) for budget in scale[SitScale].prc]:
                    yield from tested(need.run, need.labels, prc(scale, problem))
                    continue
            yield need

    return merged
