"""Paper `icam`: what it trains, labels and borrows; what is shown is declared beside each table and figure."""

from collections.abc import Iterator
from typing import Any

from neuroute.pipeline.papers.icam import roles
from neuroute.pipeline.papers.icam.roles import (
    ABLATIONS,
    MULTI,
    ORIGINAL,
    OWN,
    PROBLEMS,
    SINGLE,
    SIZES,
    STAGED,
    large,
    run_id,
)
from neuroute.pipeline.papers.icam.scale import IcamScale
from neuroute.pipeline.plan.changes import apply_changes, declare_run, seed_of
from neuroute.pipeline.plan.claims import Protocol, on_benchmark
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.papers import borrow_runs
from neuroute.specs.decodings import Decoding, beam_search
from neuroute.specs.objects import Elite, Labels, Network, Problem, Reinforced, Run

COUNTS = {100: 10_000, 200: 128, 500: 128, 1000: 128}
SOLVERS: dict[Problem, str] = {"tsp": "Concorde", "cvrp": "LKH3"}
GREEDILY = (SINGLE, MULTI, roles.AUGMENTED)
RRC, BEAM = Decoding(method="rrc", iterations=100), beam_search(16)
SEARCHES = tuple(way.model_copy(update={"starts": starts}) for way in (RRC, BEAM) for starts in (1, "all"))
MDAM = Decoding(method=roles.DECODERS, beam=50)
OF_OTHERS: dict[tuple[Problem, int], tuple[Decoding, ...]] = {  # Table 1's systems that the paper ran itself
    ("tsp", 500): (roles.GROWN,), ("tsp", 1000): (roles.GROWN,), ("cvrp", 1000): (roles.PARTED,),
}  # fmt: skip


def protocol(scale: Scale) -> Iterator[Protocol]:
    """Four sizes of both problems, larger ones, TAM's, and Set-X."""
    for problem in PROBLEMS:
        alike = (*GREEDILY, MDAM, *((*SEARCHES, roles.REVISED) if problem == "tsp" else ()))
        for size in SIZES:
            labels, ways = roles.reference(scale, problem, size), alike + OF_OTHERS.get((problem, size), ())
            yield Protocol(f"{problem.upper()}{size}", labels, COUNTS[size], SOLVERS[problem], ways, "files of LEHD")
    for size in roles.LARGE_SIZES:
        yield Protocol(f"TSP{size}", large(scale, size), None, "LKH3", (SINGLE, MULTI))
    for size in roles.TAM_SIZES:
        name, by_lkh3 = f"CVRP{size} C={200 if size == 1000 else 300}", size in (3000, 4000)
        solver = "LKH3" if by_lkh3 else "LKH3, as TAM printed it"
        yield Protocol(name, roles.tam(scale, size), None, solver, (SINGLE, MULTI, roles.PARTED))
    yield on_benchmark("cvrplib", 100, SINGLE, MULTI)


ICAM = {"tsp": "neuroute.networks.icam:Icam", "cvrp": "neuroute.networks.icam:IcamCvrp"}
POMO = {"tsp": "neuroute.networks.pomo:Pomo", "cvrp": "neuroute.networks.pomo:PomoCvrp"}
WITHOUT = {  # Table 9
    "AFM": {"adaptation": False, "compatibility": False},
    "AFM+CAB": {"adaptation": False},
    "AAFM": {"compatibility": False},
}


def also_solved(scale: Scale) -> list[Labels]:
    """Test sets by each of the solvers that Tables 1 and 3 compare."""
    tam = [roles.tam(scale, size).dataset for size in roles.TAM_SIZES]
    return [
        *(labels for problem in PROBLEMS for size in roles.SIZES for labels in roles.solved(scale, problem, size)),
        *(Labels(dataset=d, solver=s) for d in tam for s in scale[IcamScale].cvrp.tam_other_solvers),
    ]


def runs(config: Config, scale: Scale) -> list[Run]:
    """Its own, and baselines as `scaling`, `sit` and `rivals` train them."""
    baselines = [run for of_problem in roles.BASELINES.values() for run in of_problem.values()]
    return [*own_runs(config, scale), *borrow_runs(config, scale, [*baselines, *roles.RIVALS])]


def own_runs(config: Config, scale: Scale) -> list[Run]:
    out: list[Run] = []

    def add(name: str, problem: Problem, network: Network, training: Reinforced, **more: Any) -> None:
        run = declare_run(
            config,
            roles.PAPER,
            name,
            training,
            network=network,
            n=_first_size(scale, problem),
            validation=roles.validation(scale, problem, 100),
            also_validation=(roles.validation(scale, problem, 1000),),
            **more,
        )
        out.append(run)

    for problem in PROBLEMS:
        p = roles.sizes(scale, problem)
        shape = scale[IcamScale].pomo.model_dump() | {"train_nodes": _first_size(scale, problem)}
        pomo = Network(kind=POMO[problem], arguments=shape)
        add(OWN[problem], problem, _icam(scale, problem), p.training, role={"method": "ICAM"})
        add(ORIGINAL[problem], problem, pomo, p.single_size, role={"method": "POMO", "training": "single size"})
        add(STAGED[problem], problem, pomo, p.training, role={"method": "POMO", "training": "three stages"})
    tsp = scale[IcamScale].tsp
    for label, without in WITHOUT.items():
        add(ABLATIONS[label], "tsp", _icam(scale, "tsp", **without), tsp.training, role={"variant": label})
    seed = seed_of(config, run_id(OWN["tsp"]))  # sizes and samples follow from it: forks have those of the main run
    for k, beta in scale[IcamScale].forks:
        start = roles.at_stage(OWN["tsp"], roles.STAGES[-1])
        of_main = apply_changes(config, run_id(OWN["tsp"]), tsp.training)
        last = of_main.stages[-1].model_copy(update={"elite": Elite(k=scale[IcamScale].elites[k], beta=beta)})
        before = of_main.batches - last.batches
        other = of_main.model_copy(update={"stages": (last,), "batches_before": before})
        add(roles.fork(k, beta), "tsp", _icam(scale, "tsp"), other, role={"k": k, "beta": beta}, start=start, seed=seed)
    return out


def _first_size(scale: Scale, problem: Problem) -> int:
    """What stands for the paper's 100 nodes, on which all trainings begin."""
    return roles.sizes(scale, problem).training.stages[0].sizes[1]


def _icam(scale: Scale, problem: Problem, **without: bool) -> Network:
    shape = scale[IcamScale].network.model_dump() | {"train_nodes": _first_size(scale, problem)}
    return Network(kind=ICAM[problem], arguments=shape | without)


PAPER = Paper(
    key=roles.PAPER,
    title="Instance-Conditioned Adaptation for Large-scale Generalization of Neural Combinatorial Optimization",
    scale=IcamScale,
    runs=runs,
    also_solved=also_solved,
    borrows=("scaling", "sit", "rivals"),
    lends=own_runs,
    protocol=protocol,
)
