"""FLOPs and sizes of a described network, without building it: of a solution, and of training."""

from neuroute.accounting import flops, flops_cvrp, flops_reconstruction
from neuroute.accounting.network_counts import Counts
from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.plan.objects import Network, Reconstruction, Reinforced, Run, SelfImprovement
from neuroute.problems.longest import longest_sub_path

# By name, so that an evaluation's code digest holds the counts of its own network only.
COUNTS = {
    "neuroute.networks.decoder_only:DecoderOnly": "neuroute.accounting.network_counts:decoder_only",
    "neuroute.networks.lehd:Lehd": "neuroute.accounting.network_counts:lehd",
    "neuroute.networks.bq:Bq": "neuroute.accounting.network_counts:bq",
    "neuroute.networks.lehd_cvrp:LehdCvrp": "neuroute.accounting.network_counts:lehd_cvrp",
    "neuroute.networks.lehd_cvrp_light:LehdCvrpLight": "neuroute.accounting.network_counts:lehd_cvrp_light",
    "neuroute.networks.bq_cvrp:BqCvrp": "neuroute.accounting.network_counts:bq_cvrp",
    "neuroute.networks.pomo:Pomo": "neuroute.accounting.network_counts:pomo",
    "neuroute.networks.pomo_cvrp:PomoCvrp": "neuroute.accounting.network_counts:pomo_cvrp",
    "neuroute.networks.icam:Icam": "neuroute.accounting.network_counts:icam",
    "neuroute.networks.icam_cvrp:IcamCvrp": "neuroute.accounting.network_counts:icam_cvrp",
    "neuroute.networks.mvmoe:MvMoe": "neuroute.accounting.network_counts:mvmoe",
    "neuroute.networks.pens:Pens": "neuroute.accounting.network_counts:pens",
    "neuroute.networks.sit:Sit": "neuroute.accounting.network_counts:sit",
    "neuroute.networks.sit_cvrp:SitCvrp": "neuroute.accounting.network_counts:sit_cvrp",
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
