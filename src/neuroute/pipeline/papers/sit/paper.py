"""Paper `sit`: what it trains, labels and borrows; what is shown is declared beside each table and figure."""

from collections.abc import Iterator
from typing import Any

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.papers.sit import roles
from neuroute.pipeline.papers.sit.roles import (
    BASELINES,
    BQ_CVRP,
    INITIAL,
    PROBLEMS,
    SIT,
    SIZES,
    reference,
    run_id,
    small,
    tam,
)
from neuroute.pipeline.papers.sit.scale import SitScale
from neuroute.pipeline.plan.changes import declare_run
from neuroute.pipeline.plan.claims import Protocol, on_benchmark
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.papers import borrow_runs
from neuroute.problems.longest import longest_sub_path
from neuroute.specs.data import with_count
from neuroute.specs.decodings import REVISED_LIBRARY, Decoding, beam_search
from neuroute.specs.objects import Labels, Network, Problem, Reconstruction, Run, SelfImprovement, Supervised

COUNTS = {1000: 128, 5000: 16, 10_000: 16, 50_000: 16, 100_000: 16}
SOLVERS: dict[Problem, str] = {"tsp": "LKH3", "cvrp": "HGS"}
SMALL_SOLVERS: dict[Problem, str] = {"tsp": "Concorde", "cvrp": "HGS"}
SOURCES: dict[Problem, dict[int, str]] = {"tsp": {1000: "files of Fu et al.", 10_000: "files of Fu et al."}, "cvrp": {}}
GREEDY, RRC, BEAM = Decoding(), Decoding(method="rrc", iterations=1000, longest=1000), beam_search(16)
POMO = Decoding(starts="all", augment=True)
BUDGETS = (10, 50, 100, 500, 1000)


def protocol(scale: Scale) -> Iterator[Protocol]:
    """Five sizes of both problems, TAM's and small instances, TSPLIB and CVRPLIB."""
    for problem in PROBLEMS:
        start = INITIAL[problem]
        name = problem.upper()
        budgets = Decoding(method="prc", start=start, iterations=1000, milestones=BUDGETS)
        from_others = tuple(Decoding(method="prc", start=other, iterations=100) for other in ("greedy", "nearest"))
        lengths = tuple(Decoding(method="prc", start=start, iterations=100, longest=most) for most in roles.LONGEST)
        for size in SIZES:
            # Beams, POMO and ELG end, by memory, at 5K; random re-construct by time at 10K, as H-TSP and GLOP-G.
            searches: tuple[Decoding, ...] = (RRC, BEAM, POMO) if size <= 5000 else (RRC,) if size == 10_000 else ()
            searches += (roles.REVISED,) if problem == "tsp" else ()
            searches += (roles.GROWN if problem == "tsp" else roles.PARTED,) if size <= 10_000 else ()
            ways = (GREEDY, *searches, budgets, *from_others, *(lengths if (problem, size) == ("tsp", 10_000) else ()))
            yield Protocol(
                f"{name}{size}", reference(scale, problem, size), COUNTS[size], SOLVERS[problem], ways,
                source=SOURCES[problem].get(size, "drawn"),
            )  # fmt: skip
        for size in roles.SMALL_SIZES:
            capacity = " C=100" if problem == "cvrp" else ""
            ours = Decoding(method="prc", start=start, iterations=10)
            searched = (GREEDY, POMO, ours, *((roles.REVISED, roles.GROWN) if problem == "tsp" else ()))
            yield Protocol(
                f"{name}{size}{capacity}", small(scale, problem, size), None, SMALL_SOLVERS[problem], searched
            )
    for size in roles.TAM_SIZES:
        name = f"CVRP{size} C={200 if size == 1000 else 300}"
        yield Protocol(name, tam(scale, size), None, "none", shown=None, averaging="no gaps", source="files of TAM")
    for problem in PROBLEMS:
        prc = Decoding(method="prc", start=INITIAL[problem], iterations=1000)
        ways = (GREEDY, RRC, BEAM, POMO, prc)
        yield (
            on_benchmark("tsplib", 33, *ways, REVISED_LIBRARY)
            if problem == "tsp"
            else on_benchmark("cvrplib", 14, *ways, roles.PARTED)
        )


def also_solved(scale: Scale) -> list[Labels]:
    return [labels for problem in PROBLEMS for labels in solver_rows(scale, problem)]


def solver_rows(scale: Scale, problem: Problem) -> list[Labels]:
    """What Tables 1 and 8 show of solvers besides the reference: insertion, and others where the scale runs them."""
    p, out = roles.sizes(scale, problem), []
    for size in SIZES:
        dataset = reference(scale, problem, size).dataset
        others = [roles.INITIAL[problem], *p.other_solvers.get(size, [])]
        out += [Labels(dataset=dataset, solver=solver) for solver in others]
    if problem == "cvrp":
        tam = [roles.tam(scale, size).dataset for size in roles.TAM_SIZES]
        others = [roles.INITIAL[problem], *scale[SitScale].cvrp.tam_other_solvers]
        out += [Labels(dataset=dataset, solver=solver) for dataset in tam for solver in others]
    return out


def runs(config: Config, scale: Scale) -> list[Run]:
    """Its own, and baselines as `scaling`, `icam` and `rivals` train them."""
    baselines = [run for of_problem in BASELINES.values() for run in of_problem.values()]
    every = (*baselines, *roles.POMO_RUNS.values(), *roles.RIVALS)
    lent = [run for run in every if not run.startswith(f"{roles.PAPER}/")]
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
        n = roles.sizes(scale, problem).sizes[size]
        run = declare_run(
            config,
            roles.PAPER,
            name,
            training,
            role=role,
            network=network or _sit(scale, problem, n, **change),
            n=n,
            data=lambda training: (roles.training_labels(scale, problem, size, training.samples),),
            start=run_id(start) if start else None,
            validation=roles.validation(scale, problem, size),
        )
        try:
            longest_sub_path(getattr(run.training, "longest", None), n)
        except NeurouteError as error:
            raise NeurouteError(f"{run.id}, training.longest: {error}") from None
        out.append(run)

    for problem in PROBLEMS:
        p = roles.sizes(scale, problem)
        warm = f"warm_{problem}"
        improved(warm, problem, 1000, p.warm_up, {"size": 1000})
        for size, training in p.training.items():
            first = warm if size == 1000 else f"{problem}_1k"
            improved(f"{problem}_{roles.short(size)}", problem, size, training, {"size": size}, first)
    for problem in s.controls:
        unimproved = roles.sizes(scale, problem).training[1000].model_copy(update={"reconstructions": 0})
        improved(roles.control(problem), problem, 1000, unimproved, {"size": 1000}, f"warm_{problem}")
    for most in roles.LONGEST:
        if most != 1000:
            training = s.tsp.training[10_000].model_copy(update={"longest": s.longest[most]})
            improved(roles.with_longest(most), "tsp", 10_000, training, {"longest": most}, "tsp_1k")
    # The same with a round of warm-up before it.
    training = s.cvrp.training[1000]
    rounds = training.rounds + 1
    validations = training.validations // training.rounds * rounds
    alone = training.model_copy(
        update={"rounds": rounds, "warm_up": True, "validations": validations, "epochs_before": 0}
    )
    improved(roles.SELF, "cvrp", 1000, alone, {"attention": "self"}, attention="self")
    out.append(_like(config, labelled, roles.NO_SIT, _sit(scale, "cvrp", labelled.n), s.cvrp.no_sit))
    at = {"train_nodes": labelled.n}
    bq = Network(kind=BQ_CVRP, arguments=s.bq.model_dump() | at)
    out.append(_like(config, labelled, "bq_cvrp", bq, s.bq_training))
    sigd = Network(kind=BQ_CVRP, arguments=s.sigd.model_dump(exclude_none=True) | at)
    out.append(_like(config, labelled, "sigd_cvrp", sigd, s.sigd_training))
    for size, training in s.bq_sit.items():
        shape = s.bq.model_dump() | {"train_nodes": s.cvrp.sizes[size], "attention": "cross"}
        cross = Network(kind=BQ_CVRP, arguments=shape | {"representatives": s.network.representatives})
        improved(roles.with_cross_attention(size), "cvrp", size, training, {"size": size}, network=cross)
    for count, here in s.repetitions.items():
        name, training = roles.with_repetitions(count), s.repetition_training
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
        roles.PAPER,
        name,
        training,
        role={"size": 100},
        network=network,
        n=like.n,
        data=lambda t: (with_count(like.data[0], t.samples),) if isinstance(t, Supervised) else (),
        validation=like.validation,
    )


PAPER = Paper(
    key=roles.PAPER,
    title="Boosting Neural Combinatorial Optimization for Large-Scale Vehicle Routing Problems",
    scale=SitScale,
    runs=runs,
    also_solved=also_solved,
    borrows=("scaling", "icam", "rivals"),
    lends=own_runs,
    protocol=protocol,
)
