"""What paper `sit` trains and measures.  Declarations only; what is shown is in `artifacts`."""

from typing import Any

from neuroute.core.errors import NeurouteError
from neuroute.papers.scaling import declare as scaling
from neuroute.papers.sit import roles
from neuroute.papers.sit.artifacts import artifacts
from neuroute.papers.sit.measurements import evaluations
from neuroute.papers.sit.roles import BASELINES, BQ_CVRP, PAPER, PROBLEMS, SIT, SIZES, reference, run_id, validation
from neuroute.plan.changes import seed_of, settled
from neuroute.plan.config import Config, Scale, TrainingScale
from neuroute.plan.objects import (
    LabelBundle,
    Labels,
    Network,
    Problem,
    Reconstruction,
    Run,
    Supervised,
)
from neuroute.problems.longest import longest_sub_path

__all__ = ["PAPER", "TITLE", "artifacts", "bundles", "evaluations", "runs"]
TITLE = "Boosting Neural Combinatorial Optimization for Large-Scale Vehicle Routing Problems"


# -- labels ---------------------------------------------------------------------------------------------------------


def bundles(scale: Scale, runs: list[Run]) -> list[LabelBundle]:
    own = [r for r in runs if r.paper == PAPER]
    tsp = [r for r in runs if r.id in BASELINES["tsp"].values()]
    labelled = [r for r in runs if r.validation.dataset.problem == "cvrp" and isinstance(r.training, Supervised)]
    most = max(r.training.samples for r in labelled)
    out = [b for b in scaling.bundles(scale, tsp) if b.name.startswith("train-") or b.name == "in_domain"]

    def bundle(name: str, labels: list[Labels]) -> None:
        out.append(LabelBundle(paper=PAPER, name=name, labels=tuple(dict.fromkeys(labels))))

    bundle("initial", _largest([labels for r in own if isinstance(r.training, Reconstruction) for labels in r.data]))
    count = scale.scaling.lehd_cvrp.validation_count
    bundle("labelled", [scaling.cvrp_labels(scale, "train", most), scaling.cvrp_labels(scale, "val", count)])
    for problem in PROBLEMS:
        p = roles.sizes(scale, problem)
        tests = [reference(scale, problem, size) for size in SIZES]
        small = [roles.small(scale, problem, size) for size in roles.SMALL_SIZES]
        bundle(f"tests-{problem}", [*(validation(scale, problem, size) for size in p.training), *tests, *small])
    bundle("tam", [roles.tam(scale, size) for size in roles.TAM_SIZES])
    bundle("solvers", [labels for problem in PROBLEMS for labels in solver_rows(scale, problem)])
    return out


def solver_rows(scale: Scale, problem: Problem) -> list[Labels]:
    """What Tables 1 and 8 show of solvers besides the reference: insertion, and others where the scale runs them."""
    p, out = roles.sizes(scale, problem), []
    for size in SIZES:
        dataset = reference(scale, problem, size).dataset
        others = [roles.INITIAL[problem], *p.other_solvers.get(size, [])]
        out += [Labels(dataset=dataset, solver=solver) for solver in others]
    if problem == "cvrp":
        tam = [roles.tam(scale, size).dataset for size in roles.TAM_SIZES]
        out += [Labels(dataset=dataset, solver=roles.INITIAL[problem]) for dataset in tam]
    return out


def _largest(labels: list[Labels]) -> list[Labels]:
    """Of labels of one stream the most; the others are its first instances."""
    found: dict[tuple[str, str], Labels] = {}
    for each in labels:
        key = (each.dataset.stem, each.solver)
        if key not in found or found[key].dataset.count < each.dataset.count:
            found[key] = each
    return list(found.values())


# -- runs -----------------------------------------------------------------------------------------------------------


def runs(config: Config, scale: Scale) -> list[Run]:
    s, out = scale.sit, []

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
        own = settled(config, run_id(name), Reconstruction, training)
        try:
            longest_sub_path(own.longest, n)
        except NeurouteError as error:
            raise NeurouteError(f"{run_id(name)}, training.longest: {error}") from None
        out.append(
            Run(
                paper=PAPER,
                name=name,
                role=role,
                network=network or _sit(scale, problem, n, **change),
                training=own,
                n=n,
                data=(roles.training_labels(scale, problem, size, own.samples),),
                start=run_id(start) if start else None,
                validation=validation(scale, problem, size),
                seed=seed_of(config, run_id(name)),
            )
        )

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
    for longest in roles.LONGEST:
        if longest != 1000:
            training = s.tsp.training[10_000].model_copy(update={"longest": s.longest[longest]})
            improved(roles.with_longest(longest), "tsp", 10_000, training, {"longest": longest}, "tsp_1k")
    alone = _from_scratch(s.cvrp.training[1000])
    improved(roles.SELF, "cvrp", 1000, alone, {"attention": "self"}, attention="self")
    out.append(_labelled(config, scale, roles.NO_SIT, _sit(scale, "cvrp", _cvrp100(scale)), s.cvrp.no_sit))
    bq = Network(kind=BQ_CVRP, arguments=s.bq.model_dump() | {"train_nodes": _cvrp100(scale)})
    out.append(_labelled(config, scale, "bq_cvrp", bq, s.bq_training))
    for size, training in s.bq_sit.items():
        shape = s.bq.model_dump() | {"train_nodes": s.cvrp.sizes[size], "attention": "cross"}
        cross = Network(kind=BQ_CVRP, arguments=shape | {"representatives": s.network.representatives})
        improved(roles.with_cross_attention(size), "cvrp", size, training, {"size": size}, network=cross)
    for count, here in s.repetitions.items():
        role: dict[str, object] = {"repetitions": count}
        name = roles.with_repetitions(count)
        improved(name, "tsp", 1000, s.repetition_training, role, representatives=here)
    baselines = {run for of_problem in BASELINES.values() for run in of_problem.values()}
    return [*out, *(r for r in scaling.runs(config, scale) if r.id in baselines)]


def _from_scratch(training: Reconstruction) -> Reconstruction:
    """The same with a round of warm-up before it."""
    rounds = training.rounds + 1
    validations = training.validations // training.rounds * rounds
    return training.model_copy(
        update={"rounds": rounds, "warm_up": True, "validations": validations, "epochs_before": 0}
    )


def _cvrp100(scale: Scale) -> int:
    return scale.scaling.lehd_cvrp.customers


def _sit(scale: Scale, problem: Problem, n: int, **change: Any) -> Network:
    shape = scale.sit.network.model_dump(exclude={"detach_customers"})
    if problem == "cvrp" and scale.sit.network.detach_customers:
        shape["detach_customers"] = True
    return Network(kind=SIT[problem], arguments=shape | {"train_nodes": n} | change)


def _labelled(config: Config, scale: Scale, name: str, network: Network, training: TrainingScale) -> Run:
    """A training on solutions of the labelled CVRP100 that LEHD has in `scaling`."""
    own = settled(config, run_id(name), Supervised, training)
    return Run(
        paper=PAPER,
        name=name,
        role={"size": 100},
        network=network,
        training=own,
        n=_cvrp100(scale),
        data=(scaling.cvrp_labels(scale, "train", own.samples),),
        validation=scaling.cvrp_labels(scale, "val", scale.scaling.lehd_cvrp.validation_count),
        seed=seed_of(config, run_id(name)),
    )
