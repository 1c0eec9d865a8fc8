"""What paper `sit` measures of its models and of the baselines."""

from neuroute.papers.sit import roles
from neuroute.papers.sit.evaluations import RoundEvaluation
from neuroute.papers.sit.roles import BASELINES, BQ_CVRP, PROBLEMS, SIT, SIZES, group, reference, run_id
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.config import Scale
from neuroute.plan.objects import (
    Benchmark,
    BenchmarkEvaluation,
    Dataset,
    Decoding,
    EfficiencyEvaluation,
    Evaluation,
    Labels,
    Network,
    Problem,
    RunEvaluation,
    Start,
    Test,
    beam_search,
)

POMO = "neuroute.networks.pomo:Pomo"


def evaluations(scale: Scale) -> list[RunEvaluation]:
    s = scale[SitScale]
    tests: dict[str, list[Test]] = {}

    def test(run: str, labels: Labels, *decodings: Decoding) -> None:
        tests.setdefault(run, []).extend(Test(labels=labels, decoding=d) for d in decodings or (Decoding(),))

    for problem in PROBLEMS:
        for name in (f"warm_{problem}", *([roles.control(problem)] if problem in s.controls else [])):
            test(run_id(name), reference(scale, problem, 1000))
        for size in SIZES:
            starts: tuple[Start, ...] = ("greedy", "nearest")
            others = (roles.prc_from(scale, start) for start in starts)
            own = run_id(roles.model(scale, problem, size))
            test(own, reference(scale, problem, size), Decoding(), roles.prc(scale, problem), *others)
        for size in roles.SMALL_SIZES:
            small = roles.small(scale, problem, size)
            test(run_id(f"{problem}_1k"), small, Decoding(), roles.prc_of(scale, problem, 100))
    for longest in roles.LONGEST:
        labels = reference(scale, "tsp", 10_000)
        test(
            run_id(roles.with_longest(longest)),
            labels,
            *(roles.prc_with_longest(scale, each) for each in roles.LONGEST),
        )
    for size in roles.ABLATED:
        for name in ("cvrp_1k", roles.NO_SIT, roles.SELF):
            test(run_id(name), reference(scale, "cvrp", size))
    for size in roles.TAM_SIZES:
        test(run_id("cvrp_1k"), roles.tam(scale, size))
    for size in s.bq_sit:
        test(run_id(roles.with_cross_attention(size)), reference(scale, "cvrp", size))
    for count in s.repetitions:
        test(run_id(roles.with_repetitions(count)), reference(scale, "tsp", 1000))
    for problem in PROBLEMS:
        for name, run in BASELINES[problem].items():
            for size in SIZES[:3]:
                test(run, reference(scale, problem, size))
            for size in roles.SMALL_SIZES:
                test(run, roles.small(scale, problem, size))
            for size in roles.searched(scale, problem, name):
                test(run, reference(scale, problem, size), *search(scale, problem, name))
    out: list[RunEvaluation] = [
        Evaluation(run=run, group=group(run), tests=tuple(dict.fromkeys(found))) for run, found in tests.items()
    ]
    for problem in PROBLEMS:
        greedy_and_prc = (Decoding(), roles.prc_of(scale, problem, 1000))
        out.append(_benchmark(scale, problem, run_id(f"{problem}_1k"), greedy_and_prc))
        out += [_benchmark(scale, problem, run, (Decoding(),)) for run in BASELINES[problem].values()]
    return [*out, *_efficiency(scale), _round(scale)]


def search(scale: Scale, problem: Problem, method: str) -> list[Decoding]:
    """What Table 1 shows of a baseline besides greedy decoding, where it can be done here."""
    if method == "LEHD":
        return [Decoding(method="rrc", iterations=scale[SitScale].rrc)]
    return [beam_search(scale[SitScale].beam)] if problem == "tsp" else []


def _benchmark(scale: Scale, problem: Problem, run: str, decodings: tuple[Decoding, ...]) -> BenchmarkEvaluation:
    least, most = roles.sizes(scale, problem).benchmark_nodes
    name: Benchmark = "tsplib" if problem == "tsp" else "cvrplib"
    return BenchmarkEvaluation(
        run=run, group=group(run, name), benchmark=name, min_nodes=least, max_nodes=most, decodings=decodings
    )


def _efficiency(scale: Scale) -> list[RunEvaluation]:
    """Table 4 hangs on the TSP's main run, Tables 3 and 10 on the CVRP's; the weights are random."""
    s = scale[SitScale]
    shapes: dict[str, dict[str, object]] = {name: shape.model_dump() for name, shape in s.efficiency_shapes.items()}
    shapes["sit"] |= {"representatives": s.network.representatives}

    def network(kind: str, shape: str, **more: object) -> Network:
        return Network(kind=kind, arguments=shapes[shape] | more)

    tsp = {
        "POMO": network(POMO, "pomo"),
        "SIGD": network(roles.BQ, "sigd"),
        "LEHD": network(roles.LEHD, "lehd"),
        "SIT": network(SIT["tsp"], "sit"),
    }
    cvrp = {
        "SIT": network(SIT["cvrp"], "sit"),
        "self-attention": network(SIT["cvrp"], "sit", attention="self"),
        "BQ": network(BQ_CVRP, "bq"),
        "BQ+cross-attention": network(BQ_CVRP, "bq", attention="cross", representatives=s.network.representatives),
    }
    measured: list[tuple[str, Problem, dict[str, Network], tuple[int, ...]]] = [
        ("tsp_1k", "tsp", tsp, SIZES),
        ("cvrp_1k", "cvrp", cvrp, roles.ABLATED),
    ]
    return [
        EfficiencyEvaluation(
            run=run_id(run),
            networks=networks,
            datasets=tuple(roles.efficiency(scale, problem, size) for size in sizes),
            decisions=s.efficiency_decisions,
        )
        for run, problem, networks, sizes in measured
    ]


def _round(scale: Scale) -> RoundEvaluation:
    """Figures 1 and 2: on an instance of the validation stream, with blocks short enough to be seen.

    The second one: of the first, at small sizes, random insertion leaves nothing to improve.
    """
    n = scale[SitScale].tsp.sizes[1000]
    decoding = roles.prc_of(scale, "tsp", 50).model_copy(update={"longest": max(4, n // 4)})
    return RoundEvaluation(
        run=run_id("tsp_1k"), dataset=Dataset(split="val", n=n, first=1, count=1), decoding=decoding, decision=n // 3
    )
