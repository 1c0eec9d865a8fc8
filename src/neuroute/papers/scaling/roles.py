"""The models and test sets of paper `scaling`, by the paper's own numbers, whatever they are at a scale."""

from __future__ import annotations

from neuroute.papers.scaling.evaluations import ProbeEvaluation
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import Need, Tested
from neuroute.plan.objects import BenchmarkEvaluation, Dataset, Distribution, Labels

PAPER = "scaling"
DEPTHS, WIDTHS = (6, 12, 24, 42), (128, 256, 512)
SIZES = (100, 200, 500, 1000)
SHIFTED: tuple[Distribution, ...] = ("explosion", "implosion", "cluster")  # Tables 14-16
GRID = [f"{d}x{w}" for d in DEPTHS for w in WIDTHS]
DEEP = ("24x64", "96x32")  # Table 2
LATENCY = ("12x512", "24x256")  # Table 17
COMPARED = ("6x128", "6x512", "42x128", "42x512")  # Tables 5, 6 and 19
LOG_N = ("6x128", "6x256", "6x512", "42x128")  # Table 8: its wide row has two models mixed up, so both
PROBED = ("6x128", "6x512", "42x128")  # Figures 10-12
SIX = ("6x128", "12x128", "24x128", "42x128", "6x256", "6x512")  # Figures 3 and 4
FEW = ("6x128", "6x512", "42x128")  # Table 3
BASELINES = ("lehd_6x128", "bq", "sigd")  # Tables 5 and 6


def depth_and_width(shape: str) -> tuple[int, int]:
    """The paper's (depth, width) of "6x128"."""
    depth, width = map(int, shape.split("x"))
    return depth, width


def run_id(shape: str, prefix: str = "base") -> str:
    return f"{PAPER}/{prefix}_{shape}"


def with_seed(name: str, seed: int) -> str:
    """Name or id of a repeated training; seed 0 is the run itself."""
    return name if seed == 0 else f"{name}-s{seed}"


def seeds(scale: Scale, name: str) -> list[str]:
    """Names of the trainings of a run that differ in their seed only."""
    return [with_seed(name, s) for s in range(scale[ScalingScale].seeds.get(name, 1))]


def reference(scale: Scale, size: int, count: int | None = None, distribution: Distribution = "uniform") -> Labels:
    """The labelled test set that stands for the paper's TSP`size`."""
    s = scale[ScalingScale]
    usual = s.test_counts[size] if distribution == "uniform" else s.shifted_counts.get(size, s.test_counts[size])
    dataset = Dataset(distribution=distribution, split="test", n=s.sizes[size], count=count or usual)
    return Labels(dataset=dataset, solver=scale.reference_solver)


def validation(scale: Scale) -> Labels:
    s = scale[ScalingScale]
    dataset = Dataset(split="val", n=s.sizes[100], count=s.validation_count)
    return Labels(dataset=dataset, solver=scale.reference_solver)


# -- what is measured ------------------------------------------------------------------------------------------------


def group(scale: Scale, need: Tested) -> str:
    """Which of a run's tests are measured by one job: the largest models take long."""
    s, d, decoding = scale[ScalingScale], need.test.labels.dataset, need.test.decoding
    own, in_domain = need.run.startswith(f"{PAPER}/base_"), d.n == s.sizes[100]
    if decoding.method == "rrc":
        return "rrc"
    if not decoding.log_n:
        return "without_log"
    if d.distribution != "uniform":
        return "shifted"
    if decoding.method == "beam" or (own and in_domain and d.count != s.test_counts[100]):
        return "beam_larger" if own and not in_domain else "beam"
    small = need.run.rpartition("/")[2].startswith(("small01M", "bq", "sigd"))
    return "greedy" if in_domain or small or d.problem == "cvrp" else "larger"


def on_tsplib(scale: Scale, run: str) -> BenchmarkEvaluation:
    return BenchmarkEvaluation(run=run, max_nodes=scale[ScalingScale].tsplib_max_nodes)


def probe_needs(scale: Scale) -> list[Need]:
    """Of Figures 10 to 12.

    The first decision of a tour has two right answers; the paper does not say which one it draws.
    """
    s = scale[ScalingScale]
    decision, probed = min(max(1, s.sizes[100] // 10), s.sizes[100] - 4), reference(scale, 100, s.probe_count)
    return [ProbeEvaluation(run=run_id(shape), optimal=probed, decision=decision) for shape in PROBED]
