"""Paper `icam`: its block in a scale file, models and test sets by the paper's numbers, and trainings."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from neuroute.pipeline.plan.changes import apply_changes, declare_run, seed_of
from neuroute.pipeline.plan.claims import Protocol, on_benchmark
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.needs import Need, by_solvers
from neuroute.pipeline.plan.paper import Paper, borrow_runs, borrow_test_set
from neuroute.pipeline.plan.shapes import BaselineShape, IcamShape, Nodes, Positive, names_each
from neuroute.pipeline.plan.systems import DIFUSCO, ELG, GLOP, GROWN, HTSP, PARTED, REVISED
from neuroute.specs.objects import (
    BenchmarkEvaluation,
    Dataset,
    Decoding,
    Elite,
    Labels,
    Measurement,
    Network,
    Problem,
    Reinforced,
    Run,
    Spec,
    Stage,
    beam_search,
)

SIZES = (100, 200, 500, 1000)
LARGE_SIZES = (2000, 3000, 4000, 5000)  # Table 6
TAM_SIZES = (1000, 2000, 3000, 4000, 5000)  # Table 3
KS, BETAS = (20, 50, 100), (0.0, 0.1, 0.5, 0.9)  # Table 10
MAIN = (20, 0.1)  # k and beta of the main run (Table 5)
ALL_STAGES = ["stage1", "stage2", "stage3"]
LARGEST_DEMAND = 9  # as in `datasets.streams`: a smaller vehicle could not serve every customer


class IcamProblem(Spec):
    """One of the two problems.  Keys are the paper's sizes."""

    training: Annotated[Reinforced, Field(description="three stages, of ICAM and of POMO (Section 4, Table 5)")]
    single_size: Annotated[Reinforced, Field(description="POMO as its authors train it")]
    validation_counts: Annotated[
        dict[int, Positive], Field(description="smallest and largest n -> validation instances here")
    ]
    other_solvers: Annotated[
        dict[int, list[str]], Field(description="Table 1's solvers besides the reference: the paper's n -> solvers")
    ] = {}

    _named = names_each(validation_counts={100, 1000})

    @model_validator(mode="after")
    def _stages_are_three(self) -> "IcamProblem":
        names = [stage.name for stage in self.training.stages]
        if names != ALL_STAGES:
            raise ValueError(f"training: its stages must be {ALL_STAGES}, got {names}")
        for name, training in (("training", self.training), ("single_size", self.single_size)):
            if training.batches_before:
                raise ValueError(f"{name}.batches_before is {training.batches_before}: nothing comes before it")
        if strange := set(self.other_solvers) - set(SIZES):
            raise ValueError(f"other_solvers: {sorted(strange)} are none of the paper's sizes {list(SIZES)}")
        return self

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Of all trainings."""
        return self.training.stages + self.single_size.stages


class IcamCvrp(IcamProblem):
    """The CVRP has test sets of its own; the TSP's are those of `scaling`."""

    sizes: Annotated[dict[int, Nodes], Field(description="the paper's n -> customers here")]
    test_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> test instances here")]
    references: Annotated[dict[int, str], Field(description="the paper's n -> solver of the reference solutions")]
    tam_sizes: Annotated[dict[int, Nodes], Field(description="Table 3: the paper's n -> customers here")]
    tam_capacities: Annotated[dict[int, int], Field(description="Table 3: the paper's n -> capacity here")]
    tam_counts: Annotated[dict[int, Positive], Field(description="Table 3: the paper's n -> test instances here")]
    tam_solver: Annotated[str, Field(description="Table 3: solver of the reference solutions")]
    tam_other_solvers: Annotated[list[str], Field(description="Table 3: other solvers that are run")] = []
    benchmark_nodes: Annotated[
        tuple[int, int],
        Field(description="Table 2: Set-X's instances with at least, and with less than, this many nodes"),
    ]

    _tests_named = names_each(
        sizes=SIZES, test_counts=SIZES, references=SIZES, tam_sizes=TAM_SIZES, tam_capacities=TAM_SIZES,
        tam_counts=TAM_SIZES, differ=["sizes", "tam_sizes"],
    )  # fmt: skip

    @model_validator(mode="after")
    def _tests_can_be(self) -> "IcamCvrp":
        if min(self.tam_capacities.values()) < LARGEST_DEMAND:
            raise ValueError(f"tam_capacities {self.tam_capacities}: demands are up to {LARGEST_DEMAND}; give no less")
        least, below = self.benchmark_nodes
        if not least < below:
            raise ValueError(f"benchmark_nodes: from {least} to less than {below} nodes; give the smaller number first")
        return self


class IcamScale(Spec):
    """What the roles of paper `icam` stand for at this scale.  Keys are the paper's numbers.

    The TSP's test sets, LEHD and BQ are those of `scaling`, BQ for the CVRP is that of `sit`.
    """

    network: IcamShape
    pomo: BaselineShape
    tsp: IcamProblem
    cvrp: IcamCvrp
    elites: Annotated[dict[int, Positive], Field(description="Table 10: the paper's k -> best solutions here")]
    forks: Annotated[
        list[tuple[int, float]],
        Field(description="Table 10: the paper's k and beta of other third stages that are trained here"),
    ]
    large_sizes: Annotated[dict[int, Nodes], Field(description="Table 6: the paper's n -> nodes here")]
    large_counts: Annotated[dict[int, Positive], Field(description="Table 6: the paper's n -> test instances here")]
    large_solver: Annotated[str, Field(description="Table 6: solver of the reference solutions")]
    rrc: Annotated[int, Field(ge=1, description="Table 11's 100 iterations of random re-construct -> here")]
    rrc_max_nodes: Annotated[int, Field(ge=4, description="largest instances that random re-construct is run on")]
    beam: Annotated[int, Field(ge=1, description="Table 11's beam of 16 -> here")]
    decoder_beam: Annotated[int, Field(ge=1, description="the 50 beams of each of MDAM's decoders -> here")] = 50
    beam_max_nodes: Annotated[int, Field(ge=4, description="largest instances that beams are run on")]

    _named = names_each(elites=KS, large_sizes=LARGE_SIZES, large_counts=LARGE_SIZES, differ=["large_sizes"])

    @model_validator(mode="after")
    def _capacities_are_of_the_cvrp(self) -> "IcamScale":
        if stages := [stage.name for stage in self.tsp.stages if stage.capacities]:
            raise ValueError(f"tsp: capacities of {stages[0]}: they are for the CVRP")
        return self

    @model_validator(mode="after")
    def _third_stages_fit(self) -> "IcamScale":
        k, beta = MAIN
        last = self.tsp.training.stages[-1]
        here = (last.elite.k, last.elite.beta) if last.elite else None
        if here != (self.elites[k], beta):
            raise ValueError(
                f"tsp.training: elite of stage3 is {here}; give the main run's of Table 10: k = {k}, here elites.{k} = "
                f"{self.elites[k]}, and beta = {beta}"
            )
        if len(set(self.elites.values())) < len(KS):
            raise ValueError(f"elites {self.elites} must all differ")
        fewest = last.starts_of(last.sizes[0])
        for place in self.forks:
            k, beta = place
            if k not in KS or beta not in BETAS or place == MAIN:
                raise ValueError(
                    f"forks: k = {k}, beta = {beta:g}: Table 10 has k {list(KS)}, beta {list(BETAS)}; the main run is "
                    f"k = {MAIN[0]}, beta = {MAIN[1]}"
                )
            if self.elites[k] > fewest:
                raise ValueError(f"elites.{k}: the best {self.elites[k]} of {fewest} solutions")
        if len(set(self.forks)) < len(self.forks):
            raise ValueError(f"forks {self.forks} must all differ")
        return self


KEY = "icam"
SCALING, SIT = "scaling", "sit"  # lend their baselines, and the TSP's test sets
PROBLEMS: tuple[Problem, ...] = ("tsp", "cvrp")
OWN: dict[Problem, str] = {"tsp": "icam_tsp", "cvrp": "icam_cvrp"}
ORIGINAL: dict[Problem, str] = {"tsp": "pomo_tsp", "cvrp": "pomo_cvrp"}  # POMO as its authors train it
STAGED: dict[Problem, str] = {"tsp": "pomo3_tsp", "cvrp": "pomo3_cvrp"}  # POMO in the three stages (Table 7)
ABLATIONS = {"AFM": "abl_afm", "AFM+CAB": "abl_afm_cab", "AAFM": "abl_aafm", "AAFM+CAB": OWN["tsp"]}  # Table 9
STAGES = ("stage1", "stage2")  # whose checkpoints are kept besides the last (Table 8)
SHARE = 0.95  # of the choices, that lie in the region of preferred nodes (Figure 1)
RANKS = 20  # the last one counts all ranks from there on
BASELINES: dict[Problem, dict[str, str]] = {  # trained for other papers
    "tsp": {"LEHD": f"{SCALING}/lehd_6x128", "BQ": f"{SCALING}/bq"},
    "cvrp": {"LEHD": f"{SCALING}/lehd_cvrp", "BQ": f"{SIT}/bq_cvrp"},
}
GLOP_G, GLOP_G_2K = "rivals/glop_g", "rivals/glop_g_2k"
POINTERFORMER = "rivals/pointerformer"
DIMES, DIMES_LARGE = "rivals/dimes", "rivals/dimes_large"
MDAM: dict[Problem, str] = {"tsp": "rivals/mdam_tsp", "cvrp": "rivals/mdam_cvrp"}
ATT_GCN, ATT_GCN_LARGE = "rivals/att_gcn", "rivals/att_gcn_large"
RIVALS = (  # those that a scale has
    *ELG.values(), POINTERFORMER, ATT_GCN, ATT_GCN_LARGE, DIFUSCO, DIMES, DIMES_LARGE, *MDAM.values(), HTSP, GLOP,
    GLOP_G, GLOP_G_2K,
)  # fmt: skip
Starts = Literal[1, "all"]
SINGLE, MULTI, AUGMENTED = Decoding(), Decoding(starts="all"), Decoding(starts="all", augment=True)
MERGED = Decoding(method="edge_maps:merging")  # maps of edges
DECODERS = "mdam:decoders"  # MDAM's search


run_id = f"{KEY}/{{}}".format  # name -> id


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
    return scale.reference(Dataset(problem="cvrp", n=c.sizes[size], count=c.test_counts[size]), c.references[size])


def by_all_solvers(scale: Scale, problem: Problem, size: int) -> tuple[Labels, ...]:
    """A test set as each solver that is run on it solves it, the reference first."""
    first = reference(scale, problem, size)
    return by_solvers(first, [first.solver, *sizes(scale, problem).other_solvers.get(size, [])])


def validation(scale: Scale, problem: Problem, size: Literal[100, 1000]) -> Labels:
    """Training logs gaps on the smallest and the largest size (icam, the published code)."""
    count = sizes(scale, problem).validation_counts[size]
    return scale.validation(lambda s: reference(s, problem, size), count)


def large(scale: Scale, size: int) -> Labels:
    """Table 6's test set of that size."""
    i = scale[IcamScale]
    return scale.reference(Dataset(n=i.large_sizes[size], count=i.large_counts[size]), i.large_solver)


def tam(scale: Scale, size: int) -> Labels:
    """Table 3's test set of that size."""
    c = scale[IcamScale].cvrp
    dataset = Dataset(problem="cvrp", n=c.tam_sizes[size], count=c.tam_counts[size], capacity=c.tam_capacities[size])
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


def searched_sizes(scale: Scale, method: Literal["rrc", "beam"]) -> list[int]:
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
    nodes, is_ours = scale[IcamScale].cvrp.benchmark_nodes, run.startswith(f"{KEY}/")
    decodings = (MULTI if is_ours or run in ELG.values() else SINGLE,)
    return scale.on_benchmark(run, "cvrplib", nodes, sets=("X",), decodings=decodings, per_axis=is_ours)


def structure(scale: Scale, run: str) -> StructureEvaluation:
    """An instance of the validation stream, a third of the way; for ICAM's Figure 1 optimal tours too."""
    n = reference(scale, "tsp", 100).dataset.n
    is_main = run == run_id(OWN["tsp"])
    optimal = tuple(reference(scale, "tsp", size) for size in (100, 1000)) if is_main else ()
    return StructureEvaluation(run=run, dataset=Dataset(split="val", n=n, count=1), decision=n // 3, optimal=optimal)


def structure_needs(scale: Scale) -> list[Need]:
    """Of the drawings of ICAM for the TSP."""
    return [structure(scale, run_id(OWN["tsp"]))]


COUNTS = {100: 10_000, 200: 128, 500: 128, 1000: 128}
SOLVERS_IN_PRINT: dict[Problem, str] = {"tsp": "Concorde", "cvrp": "LKH3"}
GREEDILY = (SINGLE, MULTI, AUGMENTED)
RRC, BEAM = Decoding(method="rrc", iterations=100), beam_search(16)
SEARCHES = tuple(way.model_copy(update={"starts": starts}) for way in (RRC, BEAM) for starts in (1, "all"))
OF_OTHERS: dict[tuple[Problem, int], tuple[Decoding, ...]] = {  # Table 1's systems that the paper ran itself
    ("tsp", 500): (GROWN,), ("tsp", 1000): (GROWN,), ("cvrp", 1000): (PARTED,),
}  # fmt: skip


def protocol(scale: Scale) -> Iterator[Protocol]:
    """Four sizes of both problems, larger ones, TAM's, and Set-X."""
    for problem in PROBLEMS:
        alike = (*GREEDILY, Decoding(method=DECODERS, beam=50), *((*SEARCHES, REVISED) if problem == "tsp" else ()))
        for size in SIZES:
            labels, ways = reference(scale, problem, size), alike + OF_OTHERS.get((problem, size), ())
            yield Protocol(
                f"{problem.upper()}{size}", labels, COUNTS[size], SOLVERS_IN_PRINT[problem], ways, "files of LEHD"
            )
    for size in LARGE_SIZES:
        yield Protocol(f"TSP{size}", large(scale, size), None, "LKH3", (SINGLE, MULTI))
    for size in TAM_SIZES:
        name, by_lkh3 = f"CVRP{size} C={200 if size == 1000 else 300}", size in (3000, 4000)
        solver = "LKH3" if by_lkh3 else "LKH3, as TAM printed it"
        yield Protocol(name, tam(scale, size), None, solver, (SINGLE, MULTI, PARTED))
    yield on_benchmark("cvrplib", 100, SINGLE, MULTI)


ICAM_NETWORKS = {"tsp": "neuroute.networks.icam:Icam", "cvrp": "neuroute.networks.icam:IcamCvrp"}
POMO_NETWORKS = {"tsp": "neuroute.networks.pomo:Pomo", "cvrp": "neuroute.networks.pomo:PomoCvrp"}
WITHOUT = {  # Table 9
    "AFM": {"adaptation": False, "compatibility": False},
    "AFM+CAB": {"adaptation": False},
    "AAFM": {"compatibility": False},
}


def also_solved(scale: Scale) -> list[Labels]:
    """Test sets by each of the solvers that Tables 1 and 3 compare."""
    others = scale[IcamScale].cvrp.tam_other_solvers
    return [
        *(labels for problem in PROBLEMS for size in SIZES for labels in by_all_solvers(scale, problem, size)),
        *(labels for size in TAM_SIZES for labels in by_solvers(tam(scale, size), others)),
    ]


def runs(config: Config, scale: Scale) -> list[Run]:
    """Its own, and baselines as `scaling`, `sit` and `rivals` train them."""
    lent = [*BASELINES["tsp"].values(), *BASELINES["cvrp"].values(), *RIVALS]
    return [*own_runs(config, scale), *borrow_runs(config, scale, lent)]


def own_runs(config: Config, scale: Scale) -> list[Run]:
    out: list[Run] = []

    def add(name: str, problem: Problem, network: Network, training: Reinforced, **more: Any) -> None:
        first, last = validation(scale, problem, 100), validation(scale, problem, 1000)
        out.append(
            declare_run(
                config,
                KEY,
                name,
                training,
                network=network,
                n=_first_size(scale, problem),
                validation=first,
                also_validation=(last,),
                **more,
            )
        )

    for problem in PROBLEMS:
        p = sizes(scale, problem)
        shape = scale[IcamScale].pomo.model_dump() | {"train_nodes": _first_size(scale, problem)}
        pomo = Network(kind=POMO_NETWORKS[problem], arguments=shape)
        add(OWN[problem], problem, _icam(scale, problem), p.training, role={"method": "ICAM"})
        add(ORIGINAL[problem], problem, pomo, p.single_size, role={"method": "POMO", "training": "single size"})
        add(STAGED[problem], problem, pomo, p.training, role={"method": "POMO", "training": "three stages"})
    tsp = scale[IcamScale].tsp
    for label, without in WITHOUT.items():
        add(ABLATIONS[label], "tsp", _icam(scale, "tsp", **without), tsp.training, role={"variant": label})
    seed = seed_of(config, run_id(OWN["tsp"]))  # sizes and samples follow from it: forks have those of the main run
    for k, beta in scale[IcamScale].forks:
        start = f"{run_id(OWN['tsp'])}@{STAGES[-1]}"
        of_main = apply_changes(config, run_id(OWN["tsp"]), tsp.training)
        last = of_main.stages[-1].model_copy(update={"elite": Elite(k=scale[IcamScale].elites[k], beta=beta)})
        before = of_main.batches - last.batches
        other = of_main.model_copy(update={"stages": (last,), "batches_before": before})
        add(fork(k, beta), "tsp", _icam(scale, "tsp"), other, role={"k": k, "beta": beta}, start=start, seed=seed)
    return out


def _first_size(scale: Scale, problem: Problem) -> int:
    """What stands for the paper's 100 nodes, on which all trainings begin."""
    return sizes(scale, problem).training.stages[0].sizes[1]


def _icam(scale: Scale, problem: Problem, **without: bool) -> Network:
    shape = scale[IcamScale].network.model_dump() | {"train_nodes": _first_size(scale, problem)}
    return Network(kind=ICAM_NETWORKS[problem], arguments=shape | without)


PAPER = Paper(
    key=KEY,
    title="Instance-Conditioned Adaptation for Large-scale Generalization of Neural Combinatorial Optimization",
    scale=IcamScale,
    runs=runs,
    also_solved=also_solved,
    borrows=("scaling", "sit", "rivals"),
    lends=own_runs,
    protocol=protocol,
)
