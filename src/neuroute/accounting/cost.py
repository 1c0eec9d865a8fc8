"""FLOPs and sizes of a described network, without building it: of a solution, and of training."""

from neuroute.accounting import flops
from neuroute.accounting.counts import Counts, counts
from neuroute.plan.objects import Network, OwnTraining, Reconstruction, Reinforced, Run, SelfImprovement
from neuroute.problems.longest import longest_sub_path


def parameters_of(network: Network) -> int:
    """Count all parameters, those that are never trained included."""
    return counts(network).parameters


def per_solution(
    network: Network, nodes: int, beam: int = 1, images: int = 1, *, shrinks: bool = True
) -> dict[str, float]:
    """Count the GFLOPs of one solution: as scaling counts (Table 17), and as computed on the shrinking set.

    Either way an encoder runs once, or once for each of the instance's `images`.  V customers take as many decisions as
    a TSP of V + 1 nodes.  Without `shrinks`, as where a network of many starts is not searched with, all decisions are
    on all nodes, and `beam` is the number of solutions: starts, times images.
    """
    c = counts(network)
    encoder = images * c.encoder(nodes)
    decisions = flops.solution(c.decision, nodes, beam) if shrinks else flops.rollouts(c.decision, nodes, beam)
    return {
        "gflops_paper": (encoder + beam * flops.solution_paper(c.decision, nodes)) / 1e9,
        "gflops_shrinking": (encoder + decisions) / 1e9,
    }


def training_per_sample(run: Run) -> float:
    """Count one training instance: forward and backward, and its share of making the solutions it is trained on."""
    c, t = counts(run.network), run.training
    cvrp = run.validation.dataset.problem != "tsp"  # the other problems have a depot
    if isinstance(t, Reconstruction):
        return reconstruction_per_sample(c, run.n, t, cvrp=cvrp)
    if isinstance(t, Reinforced):
        return reinforced_per_sample(c, t, cvrp=cvrp)
    if isinstance(t, OwnTraining):
        return t.flops_per_sample(c, run)
    lengths = flops.lengths_of(run.n, t.sub_paths, cvrp=cvrp)
    per_sample = flops.trained_sample(c.decision, c.encoder, lengths, t.step, cvrp=cvrp)
    return per_sample + (sampling_per_sample(c, run.n + cvrp, t) if isinstance(t, SelfImprovement) else 0)


def sampling_per_sample(c: Counts, nodes: int, training: SelfImprovement) -> float:
    """Count rounds of beam searches for an instance, over the passes that its solution is trained on."""
    one = c.encoder(nodes) + training.rounds * flops.solution(c.decision, nodes, training.beam)
    return one / training.passes


def reconstruction_per_sample(c: Counts, stops: int, training: Reconstruction, *, cvrp: bool) -> float:
    """Count sub-paths, and re-constructions over a round's epochs; greedy first solutions over all epochs."""
    longest = longest_sub_path(training.longest, stops)
    total = flops.trained_sample(c.decision, c.encoder, flops.lengths_of(longest), training.step, cvrp=cvrp)
    each = flops.reconstruction(c.decision, c.encoder, stops, longest, training.most_blocks, cvrp=cvrp)
    total += training.reconstructions * each / training.epochs_per_round
    if training.initial == "greedy":
        nodes = stops + cvrp
        total += (c.encoder(nodes) + flops.solution(c.decision, nodes)) / training.epochs
    return total


def reinforced_per_sample(c: Counts, training: Reinforced, *, cvrp: bool) -> float:
    """Count the mean over all sizes: solutions are sampled, and all their decisions made once more to be learnt.

    With a greedy baseline its solutions are built too.  Ways back to the depot are not counted.
    """
    total, more = 0.0, training.baseline is not None
    for stage in training.stages:
        for n, instances in stage.expected_instances().items():
            nodes, moves = n + cvrp, n if cvrp else n - 2
            decisions = stage.starts_of(n) * moves * c.decision(nodes + 1)
            total += instances * stage.images * ((3 + more) * c.encoder(nodes) + (4 + more) * decisions)
    return total / (training.samples * training.epochs)
