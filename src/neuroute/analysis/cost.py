"""FLOPs and sizes of a described network, without building it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from neuroute.analysis import (
    flops,
    flops_baselines,
    flops_cvrp,
    flops_icam,
    flops_mvmoe,
    flops_pens,
    flops_pomo,
    flops_reconstruction,
    flops_sit,
)
from neuroute.dotted import resolve
from neuroute.errors import NeurouteError
from neuroute.plan.objects import Network, Reconstruction, Reinforced, Run, SelfImprovement
from neuroute.problems.longest import longest_sub_path


@dataclass(frozen=True)
class Counts:
    """What one network takes: an encoder runs once on the nodes, a decision on the tokens that are left."""

    parameters: int
    decision: Callable[[int], int]  # tokens -> FLOPs
    encoder: Callable[[int], int] = lambda nodes: 0  # nodes -> FLOPs


def decoder_only(
    *, depth: int, width: int, heads: int, gate: bool = True, rezero: bool = True, train_nodes: int = 100
) -> Counts:
    return Counts(
        flops.parameters(depth, width, gate=gate, rezero=rezero),
        lambda tokens: flops.decision_flops(depth, width, heads, tokens, gate=gate),
    )


def lehd(
    *, depth: int = 6, width: int = 128, heads: int = 8, feed_forward: int = 512, train_nodes: int = 100
) -> Counts:
    return Counts(
        flops_baselines.lehd_parameters(depth, width, feed_forward),
        lambda tokens: flops_baselines.lehd_decision_flops(depth, width, heads, feed_forward, tokens),
        lambda nodes: flops_baselines.lehd_encoder_flops(width, heads, feed_forward, nodes),
    )


def bq(*, depth: int = 9, width: int = 192, heads: int = 12, feed_forward: int = 512, train_nodes: int = 100) -> Counts:
    return Counts(
        flops_baselines.bq_parameters(depth, width, feed_forward),
        lambda tokens: flops_baselines.bq_decision_flops(depth, width, heads, feed_forward, tokens),
    )


def lehd_cvrp(
    *, depth: int = 6, width: int = 128, heads: int = 8, feed_forward: int = 512, train_nodes: int = 100
) -> Counts:
    return Counts(
        flops_cvrp.lehd_parameters(depth, width, feed_forward),
        lambda tokens: flops_cvrp.lehd_decision_flops(depth, width, heads, feed_forward, tokens),
        lambda nodes: flops_cvrp.lehd_encoder_flops(width, heads, feed_forward, nodes),
    )


def lehd_cvrp_light(
    *,
    depth: int = 6,
    width: int = 128,
    heads: int = 8,
    feed_forward: int = 512,
    experts: int = 4,
    top: int = 2,
    train_nodes: int = 100,
) -> Counts:
    """Experts run in all decisions."""
    shape = (depth, width, heads, feed_forward, experts, top)
    return Counts(
        flops_cvrp.light_lehd_parameters(depth, width, feed_forward, experts),
        lambda tokens: flops_cvrp.light_lehd_decision_flops(*shape, tokens),
        lambda nodes: flops_cvrp.lehd_encoder_flops(width, heads, feed_forward, nodes),
    )


def bq_cvrp(
    *,
    depth: int = 9,
    width: int = 192,
    heads: int = 12,
    feed_forward: int = 512,
    attention: flops_sit.Attention = "self",
    representatives: int = 15,
    train_nodes: int = 100,
) -> Counts:
    return Counts(
        flops_cvrp.bq_parameters(depth, width, feed_forward, representatives, attention=attention),
        lambda tokens: flops_cvrp.bq_decision_flops(
            depth, width, heads, feed_forward, representatives, tokens, attention=attention
        ),
    )


def pomo(
    *,
    depth: int = 6,
    width: int = 128,
    heads: int = 8,
    feed_forward: int = 512,
    clipping: float = 10.0,
    train_nodes: int = 100,
) -> Counts:
    """Of one tour.  A decision on k tokens is that of k - 1 nodes: as many as there are when a tour begins.

    POMO's decisions do not shrink: `per_solution` as the paper counts is what they take, with a beam for the starts.
    """
    return _pomo(depth, width, heads, feed_forward)


def pomo_cvrp(
    *,
    depth: int = 6,
    width: int = 128,
    heads: int = 8,
    feed_forward: int = 512,
    clipping: float = 10.0,
    train_nodes: int = 100,
) -> Counts:
    """Of one solution, as `pomo`; ways back to the depot are decisions more, and not counted."""
    return _pomo(depth, width, heads, feed_forward, cvrp=True)


def _pomo(depth: int, width: int, heads: int, feed_forward: int, *, cvrp: bool = False) -> Counts:
    return Counts(
        flops_pomo.parameters(depth, width, feed_forward, cvrp=cvrp),
        lambda tokens: flops_pomo.decision_flops(width, heads, tokens - 1),
        lambda nodes: flops_pomo.encoder_flops(depth, width, heads, feed_forward, nodes, cvrp=cvrp),
    )


def icam(
    *,
    depth: int = 12,
    width: int = 128,
    feed_forward: int = 512,
    clipping: float = 50.0,
    adaptation: bool = True,
    compatibility: bool = True,
    train_nodes: int = 100,
) -> Counts:
    """Of one tour, as `pomo`."""
    return _icam(depth, width, feed_forward, adaptation, compatibility)


def icam_cvrp(
    *,
    depth: int = 12,
    width: int = 128,
    feed_forward: int = 512,
    clipping: float = 50.0,
    adaptation: bool = True,
    compatibility: bool = True,
    train_nodes: int = 100,
) -> Counts:
    """Of one solution, as `pomo_cvrp`."""
    return _icam(depth, width, feed_forward, adaptation, compatibility, cvrp=True)


def _icam(
    depth: int, width: int, feed_forward: int, adaptation: bool, compatibility: bool, *, cvrp: bool = False
) -> Counts:
    return Counts(
        flops_icam.parameters(
            depth, width, feed_forward, cvrp=cvrp, adaptation=adaptation, compatibility=compatibility
        ),
        lambda tokens: flops_icam.decision_flops(width, tokens - 1),
        lambda nodes: flops_icam.encoder_flops(depth, width, feed_forward, nodes, cvrp=cvrp, adaptation=adaptation),
    )


def mvmoe(*, clipping: float = 10.0, train_nodes: int = 100, **shape: Any) -> Counts:
    """Of one solution of one of the 16 VRPs, as `pomo_cvrp`; a light decoder runs its experts in all decisions."""
    of = flops_mvmoe.Mvmoe(**shape)
    return Counts(of.parameters, lambda tokens: of.decision_flops(tokens - 1), of.encoder_flops)


def pens(
    *,
    depth: int = 9,
    width: int = 192,
    heads: int = 12,
    feed_forward: int = 512,
    positions: str = "alibi",
    initial: str = "gaussian",
    output_projection: bool = False,
    train_nodes: int = 100,
) -> Counts:
    shape = (depth, width, feed_forward)
    return Counts(
        flops_pens.parameters(*shape, output_projection=output_projection, coordinates=positions == "coordinates"),
        lambda tokens: flops_pens.decision_flops(
            *shape, heads, tokens, output_projection=output_projection, alibi=positions in ("alibi", "both")
        ),
    )


def sit(
    *,
    depth: int = 6,
    width: int = 128,
    heads: int = 8,
    feed_forward: int = 512,
    representatives: int = 15,
    attention: flops_sit.Attention = "cross",
    train_nodes: int = 1000,
) -> Counts:
    return Counts(
        flops_sit.parameters(depth, width, feed_forward, representatives, attention=attention),
        lambda tokens: flops_sit.decision_flops(
            depth, width, heads, feed_forward, representatives, tokens, attention=attention
        ),
    )


def sit_cvrp(
    *,
    depth: int = 6,
    width: int = 128,
    heads: int = 8,
    feed_forward: int = 512,
    representatives: int = 15,
    attention: flops_sit.Attention = "cross",
    detach_customers: bool = False,
    train_nodes: int = 1000,
) -> Counts:
    return Counts(
        flops_sit.parameters(depth, width, feed_forward, representatives, attention=attention, cvrp=True),
        lambda tokens: flops_sit.decision_flops(
            depth, width, heads, feed_forward, representatives, tokens, attention=attention, cvrp=True
        ),
    )


# By name, so that an evaluation's code digest holds the counts of its own network only.
COUNTS = {
    "neuroute.networks.decoder_only:DecoderOnly": "neuroute.analysis.cost:decoder_only",
    "neuroute.networks.lehd:Lehd": "neuroute.analysis.cost:lehd",
    "neuroute.networks.bq:Bq": "neuroute.analysis.cost:bq",
    "neuroute.networks.lehd_cvrp:LehdCvrp": "neuroute.analysis.cost:lehd_cvrp",
    "neuroute.networks.lehd_cvrp_light:LehdCvrpLight": "neuroute.analysis.cost:lehd_cvrp_light",
    "neuroute.networks.bq_cvrp:BqCvrp": "neuroute.analysis.cost:bq_cvrp",
    "neuroute.networks.pomo:Pomo": "neuroute.analysis.cost:pomo",
    "neuroute.networks.pomo_cvrp:PomoCvrp": "neuroute.analysis.cost:pomo_cvrp",
    "neuroute.networks.icam:Icam": "neuroute.analysis.cost:icam",
    "neuroute.networks.icam_cvrp:IcamCvrp": "neuroute.analysis.cost:icam_cvrp",
    "neuroute.networks.mvmoe:MvMoe": "neuroute.analysis.cost:mvmoe",
    "neuroute.networks.pens:Pens": "neuroute.analysis.cost:pens",
    "neuroute.networks.sit:Sit": "neuroute.analysis.cost:sit",
    "neuroute.networks.sit_cvrp:SitCvrp": "neuroute.analysis.cost:sit_cvrp",
}


def entry_of_counts(kind: str) -> list[str]:
    """Dotted name, for `code_digest`, of what counts a kind of network; none where nobody counts it."""
    return [COUNTS[kind]] if kind in COUNTS else []


def counts(network: Network) -> Counts:
    """Raises NeurouteError for a kind of network, or arguments, that nobody has counted."""
    if network.kind not in COUNTS:
        raise NeurouteError(f"network '{network.kind}': its FLOPs are not known; add it to COUNTS in analysis/cost.py")
    try:
        found: Counts = resolve(COUNTS[network.kind])(**network.arguments)
        return found
    except TypeError as error:
        raise NeurouteError(f"{network.kind}: cannot be counted with {network.arguments} ({error})") from None


def parameters_of(network: Network) -> int:
    """Parameters, those that are never trained included."""
    return counts(network).parameters


def per_solution(
    network: Network, nodes: int, beam: int = 1, images: int = 1, *, shrinks: bool = True
) -> dict[str, float]:
    """GFLOPs of one solution: as the paper counts (Table 17), and as computed on the shrinking set.

    Either way an encoder runs once, or once for each of the instance's `images`.  V customers take as many decisions as
    a TSP of V + 1 nodes.  Without `shrinks`, as where a network of many starts is not searched with, all decisions are
    on all nodes, and `beam` is the number of solutions: starts, times images.
    """
    c = counts(network)
    encoder = images * c.encoder(nodes)
    decisions = flops.solution(c.decision, nodes, beam) if shrinks else beam * (nodes - 2) * c.decision(nodes + 1)
    return {
        "gflops_paper": (encoder + beam * flops.solution_paper(c.decision, nodes)) / 1e9,
        "gflops_shrinking": (encoder + decisions) / 1e9,
    }


def training_per_sample(run: Run) -> float:
    """FLOPs of one training instance: forward and backward, and its share of making the solutions it is trained on."""
    c, t = counts(run.network), run.training
    cvrp = run.validation.dataset.problem != "tsp"  # the other problems have a depot
    if isinstance(t, Reconstruction):
        return reconstruction_per_sample(c, run.n, t, cvrp=cvrp)
    if isinstance(t, Reinforced):
        return reinforced_per_sample(c, t, cvrp=cvrp)
    if cvrp:
        return flops_cvrp.trained_sample(c.decision, run.n, t.step, c.encoder)
    trained = flops.trained_sample(c.decision, run.n, t.step, t.sub_paths, c.encoder)
    return trained + (sampling_per_sample(c, run.n, t) if isinstance(t, SelfImprovement) else 0)


def sampling_per_sample(c: Counts, nodes: int, training: SelfImprovement) -> float:
    """Rounds of beam searches for an instance, over the passes that its tour is trained on (and then thrown away)."""
    one = c.encoder(nodes) + training.rounds * flops.solution(c.decision, nodes, training.beam)
    return one / training.passes


def reconstruction_per_sample(c: Counts, stops: int, training: Reconstruction, *, cvrp: bool) -> float:
    """Sub-paths, and re-constructions over a round's epochs; greedy first solutions over all epochs."""
    longest = longest_sub_path(training.longest, stops)
    trained = flops_reconstruction.trained_sample(c.decision, c.encoder, longest, training.step, cvrp=cvrp)
    each = flops_reconstruction.iteration(c.decision, c.encoder, stops, longest, training.most_blocks, cvrp=cvrp)
    total = trained + training.reconstructions * each / training.epochs_per_round
    if training.initial == "greedy":
        nodes = stops + cvrp
        total += (c.encoder(nodes) + flops.solution(c.decision, nodes)) / training.epochs
    return total


def reinforced_per_sample(c: Counts, training: Reinforced, *, cvrp: bool) -> float:
    """Mean over all sizes that are drawn: solutions are sampled, and all their decisions made once more to be learnt.

    Ways back to the depot are not counted.
    """
    total = 0.0
    for stage in training.stages:
        for n, instances in stage.expected_instances().items():
            nodes, moves = n + cvrp, n if cvrp else n - 2
            decisions = stage.starts_of(n) * moves * c.decision(nodes + 1)
            total += instances * (3 * c.encoder(nodes) + 4 * decisions)
    return total / (training.samples * training.epochs)
