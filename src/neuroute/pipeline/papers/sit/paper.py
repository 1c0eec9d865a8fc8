"""Paper `sit`: its block in a scale file, models and test sets by the paper's numbers, and trainings."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.plan.changes import declare_run
from neuroute.pipeline.plan.claims import Protocol, on_benchmark
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.needs import Need, by_solvers
from neuroute.pipeline.plan.paper import Paper, borrow_runs
from neuroute.pipeline.plan.shapes import BaselineShape, Nodes, Positive, names_each
from neuroute.pipeline.plan.systems import DIFUSCO, ELG, GLOP, GROWN, HTSP, PARTED, REVISED, TREE_SEARCH
from neuroute.pipeline.rendering.cells import ONE_SEED, references_by_problem
from neuroute.pipeline.rendering.grid import Method
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import joined
from neuroute.pipeline.rendering.table import short as short
from neuroute.problems.longest import longest_sub_path
from neuroute.specs.data import with_count
from neuroute.specs.decodings import REVISED_LIBRARY
from neuroute.specs.objects import (
    Benchmark,
    BenchmarkEvaluation,
    Dataset,
    Decoding,
    EfficiencyEvaluation,
    Labels,
    Measurement,
    Network,
    Problem,
    Reconstruction,
    Run,
    SelfImprovement,
    Spec,
    Start,
    Supervised,
    Test,
    beam_search,
)

SIZES = (1000, 5000, 10_000, 50_000, 100_000)
TAM_SIZES = (1000, 2000, 5000, 7000)  # Table 8


class SitShape(BaselineShape):
    """A SIT network."""

    representatives: Annotated[int, Field(ge=1, description="repetitions of the last node (sit, Appendix C)")]
    detach_customers: Annotated[
        bool, Field(description="CVRP: customers enter without a gradient, as in the published code")
    ] = False


class SigdShape(BaselineShape):
    """SIGD's network for the CVRP: BQ's, near the current stop."""

    nearest: Annotated[int | None, Field(ge=1, description="customers that a decision sees; null: all")] = None


class SitProblem(Spec):
    """One of the two problems.  Keys are the paper's sizes; a size that is not trained takes the next smaller model."""

    sizes: Annotated[dict[int, Nodes], Field(description="the paper's n -> nodes here (CVRP: customers)")]
    test_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> test instances here")]
    validation_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> validation instances here")]
    references: Annotated[dict[int, str], Field(description="the paper's n -> solver of the reference solutions")]
    other_solvers: Annotated[
        dict[int, list[str]], Field(description="Table 1's other solvers that are run: the paper's n -> solvers")
    ] = {}
    warm_up: Annotated[Reconstruction, Field(description="on the initial solutions as they are: no re-constructions")]
    training: Annotated[dict[int, Reconstruction], Field(description="the paper's n -> self-improved training")]
    small_sizes: Annotated[dict[int, Nodes], Field(description="Table 9: the paper's n -> here")]
    small_count: Annotated[int, Field(ge=1, description="Table 9: test instances")]
    small_reference: Annotated[str, Field(description="Table 9: solver of the reference solutions")]
    benchmark_nodes: Annotated[
        tuple[int, int],
        Field(description="Table 2: the benchmark's instances with at least, and with less than, this many nodes"),
    ]

    _named = names_each(sizes=SIZES, test_counts=SIZES, references=SIZES, small_sizes={300, 500, 700}, differ=["sizes"])

    @model_validator(mode="after")
    def _parts_fit(self) -> "SitProblem":
        if set(self.validation_counts) != set(self.training):
            raise ValueError(f"validation_counts must name exactly the trained {sorted(self.training)}")
        for name, mapping in (("training", self.training), ("other_solvers", self.other_solvers)):
            if strange := set(mapping) - set(SIZES):
                raise ValueError(f"{name}: {sorted(strange)} are none of the paper's sizes {list(SIZES)}")
        if 1000 not in self.training:
            raise ValueError("training must have 1000: the larger sizes start from its model")
        if self.warm_up.reconstructions or self.warm_up.rounds > 1:
            raise ValueError("warm_up is one round on the solutions as they are: `rounds: 1`, `reconstructions: 0`")
        return self

    def trained(self, size: int) -> int:
        """Whose model the paper's size takes here."""
        return max(t for t in self.training if t <= size)


class SitCvrp(SitProblem):
    """The CVRP has test sets of its own besides."""

    small_capacity: Annotated[int | None, Field(ge=9, description="Table 9: C; the paper's is 100")] = None
    tam_sizes: Annotated[dict[int, Nodes], Field(description="Table 8: TAM's n -> customers here")]
    tam_capacities: Annotated[dict[int, int], Field(description="Table 8: TAM's n -> capacity here")]
    tam_count: Annotated[int, Field(ge=1, description="Table 8: test instances of each size")]
    tam_solver: Annotated[str, Field(description="Table 8: solver that stands for HGS here")] = "hgs"
    tam_other_solvers: Annotated[list[str], Field(description="Table 8: other solvers that are run")] = []
    no_sit: Annotated[Supervised, Field(description="Table 3: trained on labelled CVRP100 instead")]

    _tam_named = names_each(tam_sizes=TAM_SIZES, tam_capacities=TAM_SIZES)


class SitScale(Spec):
    """What the roles of paper `sit` stand for at this scale.  Keys are the paper's numbers.

    BQ, LEHD and SIGD of the TSP are those of `scaling`, as is the labelled CVRP100.
    """

    network: SitShape
    tsp: SitProblem
    cvrp: SitCvrp
    controls: Annotated[
        list[Literal["tsp", "cvrp"]],
        Field(description="problems whose main training is made once more without re-construction, to compare"),
    ] = []
    prc: Annotated[dict[int, Positive], Field(description="PRC's iterations -> here")]
    rrc: Annotated[int, Field(ge=1, description="LEHD's 1,000 iterations of random re-construct -> here")]
    beam: Annotated[int, Field(ge=1, description="BQ's and SIGD's beam of 16 -> here")]
    beam_max_nodes: Annotated[int, Field(ge=4, description="largest instances that beams are run on")]
    rrc_max_nodes: Annotated[int, Field(ge=4, description="largest instances that LEHD's RRC is run on")]
    rrc_longest: Annotated[int, Field(ge=4, description="most stops of a sub-path that LEHD's RRC rebuilds")]
    benchmark_beam_nodes: Annotated[
        int, Field(ge=4, description="Table 2: BQ's beams are run on instances below this many nodes")
    ]
    benchmark_rrc_nodes: Annotated[
        int, Field(ge=4, description="Table 2: LEHD's RRC is run on instances below this many nodes")
    ]
    longest: Annotated[dict[int, Positive], Field(description="Table 5: l_max -> stops here")]
    repetitions: Annotated[
        dict[int, Positive], Field(min_length=2, description="Figure 3: repetitions of the last node -> here")
    ]
    repetition_training: Annotated[Reconstruction, Field(description="Figure 3: two rounds in the paper")]
    bq: BaselineShape
    bq_training: Supervised
    sigd: SigdShape
    sigd_training: SelfImprovement
    bq_sit: Annotated[dict[Literal[1000, 5000], Reconstruction], Field(description="Table 10: cross-attention and SIT")]
    efficiency_sizes: Annotated[dict[int, Nodes], Field(description="Tables 3, 4, 10: the paper's n -> nodes here")]
    efficiency_shapes: Annotated[
        dict[Literal["sit", "lehd", "sigd", "pomo", "bq"], BaselineShape],
        Field(description="Tables 3, 4, 10: networks with random weights whose time and memory are measured"),
    ]
    efficiency_decisions: Annotated[int, Field(ge=2, description="points of a construction that are timed")] = 5

    _named = names_each(
        prc={10, 50, 100, 500, 1000},
        longest={100, 1000, 10_000},
        efficiency_sizes=SIZES,
        efficiency_shapes={"sit", "lehd", "sigd", "pomo", "bq"},
    )

    @model_validator(mode="after")
    def _parts_fit(self) -> "SitScale":
        if 10_000 not in self.tsp.training:
            raise ValueError("tsp.training must have 10000: Table 5 trains it with three l_max")
        main = longest_sub_path(self.tsp.training[10_000].longest, self.tsp.sizes[10_000])
        if main != self.longest[1000]:
            raise ValueError(
                f"tsp.training.10000.longest is {main}, but longest.1000, Table 5's l_max of 1,000, is "
                f"{self.longest[1000]}"
            )
        if 1000 not in self.bq_sit or 5000 in set(self.bq_sit) - set(self.cvrp.training):
            raise ValueError("bq_sit must have 1000, and 5000 only where cvrp.training has it")
        if strange := set(self.repetitions) - {1, 5, 10, 15, 20, 25}:
            raise ValueError(f"repetitions: {sorted(strange)} are none of the paper's [1, 5, 10, 15, 20, 25]")
        for role, stops in self.longest.items():
            if not 4 <= stops <= self.tsp.sizes[10_000]:
                raise ValueError(
                    f"longest.{role} is {stops}: give a number from 4 to tsp.sizes.10000, {self.tsp.sizes[10_000]}"
                )
        for name, problem in (("tsp", self.tsp), ("cvrp", self.cvrp)):
            for role, training in problem.training.items():
                if training.longest is not None and training.longest > problem.sizes[role]:
                    raise ValueError(f"{name}.training.{role}.longest is above the {problem.sizes[role]} nodes there")
        return self


KEY = "sit"
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
    "cvrp": {"LEHD": f"{SCALING}/lehd_cvrp", "BQ": f"{KEY}/bq_cvrp", "SIGD": f"{KEY}/sigd_cvrp"},
}
POMO_RUNS: dict[Problem, str] = {"tsp": "icam/pomo_tsp", "cvrp": "icam/pomo_cvrp"}  # as its authors train it
# The paper's size -> GLOP-G's partition; in print it is out of memory above.  0: CVRPLIB's.
GLOP_G = {1000: "rivals/glop_g", 5000: "rivals/glop_g_2k", 10_000: "rivals/glop_g_2k", 0: "rivals/glop_g_cvrplib"}
ELG_NODES = 5000  # the largest instances of the libraries that it solved in print
INVIT: dict[Problem, str] = {"tsp": "rivals/invit_3v", "cvrp": "rivals/invit_cvrp"}
# Of `rivals`, where the scale has them.
RIVALS: tuple[str, ...] = (*ELG.values(), DIFUSCO, GLOP, *dict.fromkeys(GLOP_G.values()), HTSP, *INVIT.values())
DIFUSCO_SIZES = (1000, 10_000)  # in print
POMO_SIZES = (1000, 5000)  # in print; out of memory above
GREEDY = Decoding()
AUGMENTED = Decoding(starts="all", augment=True)
SIT = {"tsp": "neuroute.networks.sit:Sit", "cvrp": "neuroute.networks.sit:SitCvrp"}
LEHD, BQ = "neuroute.networks.lehd:Lehd", "neuroute.networks.bq:Bq"
POMO = "neuroute.networks.pomo:Pomo"
BQ_CVRP = "neuroute.networks.bq:BqCvrp"
NO_SIT, SELF = "cvrp_no_sit", "cvrp_self"  # Table 3


run_id = f"{KEY}/{{}}".format  # name -> id


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
    return scale.reference(Dataset(problem=problem, n=p.sizes[size], count=p.test_counts[size]), p.references[size])


def validation(scale: Scale, problem: Problem, size: int) -> Labels:
    count = sizes(scale, problem).validation_counts[size]
    return scale.validation(lambda s: reference(s, problem, size), count)


def small(scale: Scale, problem: Problem, size: int) -> Labels:
    """Table 9's test set of that size."""
    p = sizes(scale, problem)
    capacity = scale[SitScale].cvrp.small_capacity if problem == "cvrp" else None
    dataset = Dataset(problem=problem, n=p.small_sizes[size], count=p.small_count, capacity=capacity)
    return scale.reference(dataset, p.small_reference)


def tam(scale: Scale, size: int) -> Labels:
    """Table 8's test set of that size."""
    c = scale[SitScale].cvrp
    dataset = Dataset(problem="cvrp", n=c.tam_sizes[size], count=c.tam_count, capacity=c.tam_capacities[size])
    return scale.reference(dataset, c.tam_solver)


def efficiency(scale: Scale, problem: Problem, size: int) -> Dataset:
    """One instance whose construction is timed (Tables 3, 4 and 10)."""
    return Dataset(problem=problem, n=scale[SitScale].efficiency_sizes[size], count=1)


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


def searched_sizes(scale: Scale, problem: Problem, method: str) -> list[int]:
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


def on_library(scale: Scale, problem: Problem, run: str) -> BenchmarkEvaluation:
    """Table 2: TSPLIB or CVRPLIB, the paper's own models with PRC too."""
    decodings = (Decoding(), *([prc_of(scale, problem, 1000)] if run == run_id(f"{problem}_1k") else []))
    nodes = sizes(scale, problem).benchmark_nodes
    return scale.on_benchmark(run, "tsplib" if problem == "tsp" else "cvrplib", nodes, decodings=decodings)


def glop_on_benchmark(scale: Scale, problem: Problem) -> BenchmarkEvaluation:
    """Table 2: GLOP by its recipe for TSPLIB, GLOP-G by its partition of CVRPLIB."""
    run, how = (GLOP, REVISED_LIBRARY) if problem == "tsp" else (GLOP_G[0], PARTED)
    return on_library(scale, problem, run).model_copy(update={"decodings": (how,)})


def elg_on_benchmark(scale: Scale, problem: Problem) -> BenchmarkEvaluation:
    """Table 2: from every node of all eight images, both axes scaled alike."""
    whole = on_library(scale, problem, ELG[problem])
    return whole.model_copy(update={"max_nodes": min(ELG_NODES + 1, whole.max_nodes), "decodings": (AUGMENTED,)})


def search_on_benchmark(scale: Scale, problem: Problem, method: str) -> BenchmarkEvaluation:
    """Table 2: LEHD's random re-construct, or BQ's beams, on the instances that are not too large for them."""
    s, whole = scale[SitScale], on_library(scale, problem, BASELINES[problem][method])
    most = s.benchmark_rrc_nodes if method == "LEHD" else s.benchmark_beam_nodes
    change = {"max_nodes": min(most, whole.max_nodes), "decodings": (search_of(scale, method),)}
    return whole.model_copy(update={"name": f"{whole.benchmark}_search", **change})


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
    second = Dataset(split="val", n=n, first=1, count=1)
    return [RoundEvaluation(run=run_id("tsp_1k"), dataset=second, decoding=decoding, decision=n // 3)]


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
        "DIFUSCO": at(DIFUSCO, DIFUSCO_SIZES, TREE_SEARCH),
        "H-TSP": at(HTSP, (*SMALL_SIZES, *SIZES[:3]), GROWN),  # out of memory above, in print
        "POMO aug×8": at(POMO_RUNS[problem], (*SMALL_SIZES, *POMO_SIZES), AUGMENTED),
        "ELG aug×8": at(ELG[problem], POMO_SIZES, AUGMENTED),
        "INViT-3V greedy": Method(runs=INVIT[problem]),  # one image and start: it costs the same at any size
        **{f"{name} greedy": at(run, greedy_sizes) for name, run in of.items()},
        **{
            label: at(of[name], searched_sizes(scale, problem, name), search_of(scale, name))
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


def system_notes(study: Study, *problems: Problem) -> dict[str, str]:
    """Say how the systems of other authors are trained and decoded here, by their names in the notes."""

    def words(name: str, runs: Mapping[Problem, str], text: str, absent: str = "") -> str:
        sizes = joined(f"{p.upper()}{study.runs[run].n}" for p, run in runs.items() if run in study.runs)
        return text.format(sizes=sizes) if sizes else absent or f"{name} is as printed."

    pomo, htsp = "POMO is trained as its authors do{} and starts from every node.", study.runs.get(HTSP)
    shape = htsp.network.arguments if htsp else {"added": 0, "fragment": 0}
    return {
        "pomo": words("POMO", POMO_RUNS, pomo.format(" (on {sizes})"), pomo.format("")),
        "elg": words(
            "ELG", ELG, "ELG is trained by its own recipe (on {sizes}) and starts from every node; its published code "
            "starts from 100, to which the printed times are nearer than to 1,000."
        ),
        "invit": words(
            "INViT", INVIT, "INViT is trained by its own recipe (on {sizes}) and decodes one image, of the TSP from "
            "one random node; its authors take the best of several images."
        ),
        "difusco": words(
            "DIFUSCO", {"tsp": DIFUSCO}, "DIFUSCO is trained by its own recipe (on {sizes}); its printed rows (*) are "
            "its authors', and fit its tree search, which at 10K is around the 2-opt tour in its code, on the map "
            "here.",
            "DIFUSCO is as printed: *, by its authors.",
        ),
        "htsp": words(
            "H-TSP", {"tsp": HTSP}, f"H-TSP is trained on {{sizes}}: {shape['added']} nodes join a tour at a time, "
            f"ordered in fragments of {shape['fragment']}."
        ),
        "glop": glop_note(study, *problems),
    }  # fmt: skip


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

    def with_milestones(scale: Scale, need: Need) -> Need:
        if not isinstance(need, Test):
            return need
        problem = need.labels.dataset.problem
        is_budget = need.decoding in [prc_of(scale, problem, budget) for budget in scale[SitScale].prc]
        return need.model_copy(update={"decoding": prc(scale, problem)}) if is_budget else need

    return lambda scale: (with_milestones(scale, need) for need in needs(scale))


COUNTS = {1000: 128, 5000: 16, 10_000: 16, 50_000: 16, 100_000: 16}
SOLVERS_IN_PRINT: dict[Problem, str] = {"tsp": "LKH3", "cvrp": "HGS"}
SMALL_SOLVERS: dict[Problem, str] = {"tsp": "Concorde", "cvrp": "HGS"}
SOURCES: dict[Problem, dict[int, str]] = {"tsp": {1000: "files of Fu et al.", 10_000: "files of Fu et al."}, "cvrp": {}}
RRC, BEAM = Decoding(method="rrc", iterations=1000, longest=1000), beam_search(16)
BUDGETS = (10, 50, 100, 500, 1000)


def protocol(scale: Scale) -> Iterator[Protocol]:
    """Five sizes of both problems, TAM's and small instances, TSPLIB and CVRPLIB."""
    for problem in PROBLEMS:
        start = INITIAL[problem]
        name = problem.upper()
        budgets = Decoding(method="prc", start=start, iterations=1000, milestones=BUDGETS)
        from_others = tuple(Decoding(method="prc", start=other, iterations=100) for other in ("greedy", "nearest"))
        lengths = tuple(Decoding(method="prc", start=start, iterations=100, longest=most) for most in LONGEST)
        for size in SIZES:
            # Beams, POMO and ELG end, by memory, at 5K; random re-construct by time at 10K, as H-TSP and GLOP-G.
            searches: tuple[Decoding, ...] = (
                (RRC, BEAM, AUGMENTED) if size <= 5000 else (RRC,) if size == 10_000 else ()
            )
            searches += (REVISED,) if problem == "tsp" else ()
            searches += (GROWN if problem == "tsp" else PARTED,) if size <= 10_000 else ()
            ways = (GREEDY, *searches, budgets, *from_others, *(lengths if (problem, size) == ("tsp", 10_000) else ()))
            yield Protocol(
                f"{name}{size}", reference(scale, problem, size), COUNTS[size], SOLVERS_IN_PRINT[problem], ways,
                source=SOURCES[problem].get(size, "drawn"),
            )  # fmt: skip
        for size in SMALL_SIZES:
            capacity = " C=100" if problem == "cvrp" else ""
            ours = Decoding(method="prc", start=start, iterations=10)
            searched = (GREEDY, AUGMENTED, ours, *((REVISED, GROWN) if problem == "tsp" else ()))
            yield Protocol(
                f"{name}{size}{capacity}", small(scale, problem, size), None, SMALL_SOLVERS[problem], searched
            )
    for size in TAM_SIZES:
        name = f"CVRP{size} C={200 if size == 1000 else 300}"
        yield Protocol(name, tam(scale, size), None, "none", shown=None, averaging="no gaps", source="files of TAM")
    libraries: dict[Problem, tuple[Benchmark, int, Decoding]]
    libraries = {"tsp": ("tsplib", 33, REVISED_LIBRARY), "cvrp": ("cvrplib", 14, PARTED)}
    for problem, (library, instances, how) in libraries.items():
        prc = Decoding(method="prc", start=INITIAL[problem], iterations=1000)
        yield on_benchmark(library, instances, GREEDY, RRC, BEAM, AUGMENTED, prc, how)


def also_solved(scale: Scale) -> list[Labels]:
    """What Tables 1 and 8 show of solvers besides the reference: insertion, and others where the scale runs them."""
    out: list[Labels] = []
    for problem, size in product(PROBLEMS, SIZES):
        others = sizes(scale, problem).other_solvers.get(size, [])
        out += by_solvers(reference(scale, problem, size), [INITIAL[problem], *others])
    for size in TAM_SIZES:
        out += by_solvers(tam(scale, size), [INITIAL["cvrp"], *scale[SitScale].cvrp.tam_other_solvers])
    return out


def runs(config: Config, scale: Scale) -> list[Run]:
    """Its own, and baselines as `scaling`, `icam` and `rivals` train them."""
    every = (*BASELINES["tsp"].values(), *BASELINES["cvrp"].values(), *POMO_RUNS.values(), *RIVALS)
    lent = [run for run in every if not run.startswith(f"{KEY}/")]
    return [*own_runs(config, scale), *borrow_runs(config, scale, lent)]


def own_runs(config: Config, scale: Scale) -> list[Run]:
    s, out = scale[SitScale], []
    (labelled,) = borrow_runs(config, scale, [BASELINES["cvrp"]["LEHD"]])

    def improved(
        name: str,
        problem: Problem,
        size: int,
        training: Reconstruction,
        role: dict[str, object],
        start: str | None = None,
        network: Network | None = None,
        **change: Any,
    ) -> None:
        n = sizes(scale, problem).sizes[size]

        def initial(training: Reconstruction) -> tuple[Labels, ...]:
            """The initial solutions of self-improved training (sit, Algorithm 2)."""
            dataset = Dataset(problem=problem, split="train", n=n, count=training.samples)
            return (Labels(dataset=dataset, solver=INITIAL[problem]),)

        run = declare_run(
            config,
            KEY,
            name,
            training,
            role=role,
            network=network or _sit(scale, problem, n, **change),
            n=n,
            data=initial,
            start=run_id(start) if start else None,
            validation=validation(scale, problem, size),
        )
        try:
            longest_sub_path(getattr(run.training, "longest", None), n)
        except NeurouteError as error:
            raise NeurouteError(f"{run.id}, training.longest: {error}") from None
        out.append(run)

    for problem in PROBLEMS:
        p = sizes(scale, problem)
        warm = f"warm_{problem}"
        improved(warm, problem, 1000, p.warm_up, {"size": 1000})
        for size, training in p.training.items():
            first = warm if size == 1000 else f"{problem}_1k"
            improved(f"{problem}_{short(size)}", problem, size, training, {"size": size}, first)
    for problem in s.controls:
        unimproved = sizes(scale, problem).training[1000].model_copy(update={"reconstructions": 0})
        improved(control(problem), problem, 1000, unimproved, {"size": 1000}, f"warm_{problem}")
    for most in LONGEST:
        if most != 1000:
            training = s.tsp.training[10_000].model_copy(update={"longest": s.longest[most]})
            improved(with_longest(most), "tsp", 10_000, training, {"longest": most}, "tsp_1k")
    # The same with a round of warm-up before it.
    training = s.cvrp.training[1000]
    rounds = training.rounds + 1
    change = {"rounds": rounds, "warm_up": True, "validations": training.validations // training.rounds * rounds}
    alone = training.model_copy(update=change | {"epochs_before": 0})
    improved(SELF, "cvrp", 1000, alone, {"attention": "self"}, attention="self")
    out.append(_like(config, labelled, NO_SIT, _sit(scale, "cvrp", labelled.n), s.cvrp.no_sit))
    at = {"train_nodes": labelled.n}
    bq = Network(kind=BQ_CVRP, arguments=s.bq.model_dump() | at)
    out.append(_like(config, labelled, "bq_cvrp", bq, s.bq_training))
    sigd = Network(kind=BQ_CVRP, arguments=s.sigd.model_dump(exclude_none=True) | at)
    out.append(_like(config, labelled, "sigd_cvrp", sigd, s.sigd_training))
    for size, training in s.bq_sit.items():
        shape = s.bq.model_dump() | {"train_nodes": s.cvrp.sizes[size], "attention": "cross"}
        cross = Network(kind=BQ_CVRP, arguments=shape | {"representatives": s.network.representatives})
        improved(with_cross_attention(size), "cvrp", size, training, {"size": size}, network=cross)
    for count, here in s.repetitions.items():
        name, training = with_repetitions(count), s.repetition_training
        improved(name, "tsp", 1000, training, {"repetitions": count}, representatives=here)
    return out


def _sit(scale: Scale, problem: Problem, n: int, **change: Any) -> Network:
    shape = scale[SitScale].network.model_dump(exclude={"detach_customers"})
    if problem == "cvrp" and scale[SitScale].network.detach_customers:
        shape["detach_customers"] = True
    return Network(kind=SIT[problem], arguments=shape | {"train_nodes": n} | change)


def _like(config: Config, like: Run, name: str, network: Network, training: Supervised | SelfImprovement) -> Run:
    """A training at the size of another run, validated as that is, on its labelled solutions if on any."""
    return declare_run(
        config,
        KEY,
        name,
        training,
        role={"size": 100},
        network=network,
        n=like.n,
        data=lambda t: (with_count(like.data[0], t.samples),) if isinstance(t, Supervised) else (),
        validation=like.validation,
    )


PAPER = Paper(
    key=KEY,
    title="Boosting Neural Combinatorial Optimization for Large-Scale Vehicle Routing Problems",
    scale=SitScale,
    runs=runs,
    also_solved=also_solved,
    borrows=("scaling", "icam", "rivals"),
    lends=own_runs,
    protocol=protocol,
)
