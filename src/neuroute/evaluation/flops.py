"""FLOPs of decisions, and of solutions, evaluations and trainings as sums over these; parameters.

A network is counted once while it runs on shapes alone (`counting`), then kept for all runs of this user.  One
multiply-add is two FLOPs.  Besides matrix products, one FLOP is counted for each entry of a softmax and each output of
an activation.  All counts are integers; divide by 1e9 for GFLOPs.
"""

import hashlib
import json
import logging
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise, product
from pathlib import Path
from typing import Any, Literal

from neuroute.core.digest import code_digest
from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.core.files import cache_folder, write_json
from neuroute.datasets.benchmarks import study_instances
from neuroute.problems.longest import SHORTEST, longest_sub_path
from neuroute.specs.decodings import Revision
from neuroute.specs.objects import (
    BenchmarkEvaluation,
    Dataset,
    Decoding,
    Evaluation,
    Network,
    OwnTraining,
    Reconstruction,
    Reinforced,
    Run,
    SelfImprovement,
    Supervised,
)
from neuroute.specs.trainings import Step

log = logging.getLogger(__name__)
COUNTING = "neuroute.evaluation.counting:measure"  # of FLOPs; by name, as it loads torch
MOST_KEPT = 5000

Piece = tuple[int, float, float, float]  # a size, and there the amount, its first and its second difference


@dataclass(frozen=True)
class Amount:
    """FLOPs by size: a quadratic from each of some sizes on.  Below the first size it is what it is there."""

    pieces: tuple[Piece, ...]

    def __call__(self, size: int) -> int:
        """FLOPs at a size; not a number where they are not known."""
        number = max(0, bisect_right(self.pieces, size, key=lambda piece: piece[0]) - 1)
        return _whole(_terms(self.pieces[number], max(0, size - self.pieces[number][0]), 0))

    def total(self, first: int, last: int) -> int:
        """Sum over all sizes from first to last; 0 if there is none."""
        starts = [first, *(start for start, *_ in self.pieces if first < start <= last), last + 1]
        return sum(self._sum(low, high) for low, high in pairwise(starts)) if first <= last else 0

    def _sum(self, low: int, high: int) -> int:
        """Sum over low, ..., high - 1, which are of one piece."""
        if low < self.pieces[0][0]:
            return (high - low) * self(low)
        piece = self.pieces[bisect_right(self.pieces, low, key=lambda piece: piece[0]) - 1]
        return _whole(_terms(piece, high - piece[0], 1) - _terms(piece, low - piece[0], 1))


def _terms(piece: Piece, steps: int, order: int) -> float:
    """Newton's series of a piece so many steps on (order 0), or of its sum over all steps before (order 1)."""
    _, *differences = piece
    return sum(each * math.comb(steps, number + order) for number, each in enumerate(differences))


def _whole(amount: float) -> int:
    return amount if isinstance(amount, int) or math.isnan(amount) else round(amount)  # type: ignore[return-value]


@dataclass(frozen=True)
class Counts:
    """What one network takes: an encoder runs once on the nodes, a decision on the tokens that are left.

    A decision of a network of many starts on k tokens is that of one solution on k - 1 nodes, as many as there are when
    a tour begins: visited nodes are computed and then left out, so the last decision costs as much as the first.
    """

    parameters: int  # those that are never trained included
    encoder: Amount
    decision: Amount


UNKNOWN = Amount(((0, math.nan, 0, 0),))


def counts(network: Network) -> Counts:
    """Look up what was counted, or count it.  Raises NeurouteError if the network cannot be built."""
    return _counts(network.kind, json.dumps(network.arguments, sort_keys=True))


@cache
def _counts(kind: str, arguments: str) -> Counts:
    key = _key(kind, arguments)
    if key is not None and (entry := _load().get(key)):
        with suppress(ValueError, TypeError):
            parameters, encoder, decision = entry
            return Counts(parameters, _amount(encoder), _amount(decision))
    _say_once()
    fresh: Counts = resolve(COUNTING)(Network(kind=kind, arguments=json.loads(arguments)))
    if key is not None and UNKNOWN not in (fresh.encoder, fresh.decision):
        _keep(key, [fresh.parameters, fresh.encoder.pieces, fresh.decision.pieces])
    return fresh


@cache
def _say_once() -> None:
    log.info("FLOPs of networks are counted, once: about a sixth of a second for each")


def _amount(pieces: list[list[float]]) -> Amount:
    return Amount(tuple((int(start), *differences) for start, *differences in pieces))  # type: ignore[misc]


def _key(kind: str, arguments: str) -> str | None:
    """Of the code that counts and that is counted, and of the arguments; None of code that is not there."""
    try:
        code = [code_digest(COUNTING), code_digest(kind)]
    except (LookupError, SyntaxError, ValueError, OSError):
        return None
    return hashlib.sha256("\0".join([*code, arguments]).encode()).hexdigest()[:32]


def _file() -> Path:
    return cache_folder() / "counts.json"


@cache
def _load() -> dict[str, list[Any]]:
    """What this process and earlier ones counted; nothing where it cannot be read."""
    with suppress(OSError, ValueError, NeurouteError):
        content = json.loads(_file().read_text())
        if isinstance(content, dict) and len(content) < MOST_KEPT:
            return content
    return {}


def _keep(key: str, entry: list[Any]) -> None:
    _load()[key] = entry
    with suppress(OSError, NeurouteError):  # then the next process counts again
        write_json(_file(), _load())


Flops = Callable[[int], int]  # of so many tokens or nodes
GREEDY = Decoding()

SubPaths = Literal["random", "suffix", "pairs"]


def solution_paper(decision: Flops, nodes: int) -> int:
    """Count a greedy solution as scaling counts it: n - 1 decisions, all at the n + 1 tokens of the first (Table 17).

    The formula is inferred: it gives both printed numbers, 843.20 and 434.40 GFLOPs, and the paper states none.  A beam
    search is as many greedy solutions (Figure 4).
    """
    return (nodes - 1) * decision(nodes + 1)


def solution(decision: Flops, nodes: int, beam: int = 1) -> int:
    """Count a solution as it is computed: each decision at its own size, once per beam that is alive then."""
    total = 0
    for tokens, live in live_beams(nodes, beam):
        if live == beam:  # from here on it stays as wide
            return total + beam * _all_sizes(decision, 3, tokens)
        total += live * decision(tokens)
    return total


def _all_sizes(decision: Flops, first: int, last: int) -> int:
    if isinstance(decision, Amount):
        return decision.total(first, last)
    return sum(map(decision, range(first, last + 1)))


def live_beams(nodes: int, beam: int) -> Iterator[tuple[int, int]]:
    """(tokens, beams alive) at each decision.  The search starts with one beam and widens as candidates allow."""
    live = 1
    for tokens in range(nodes + 1, 2, -1):
        yield tokens, live
        live = min(beam, live * (tokens - 2))


def rollouts(decision: Flops, nodes: int, tours: int) -> int:
    """Count as many solutions of a network of many starts, whose decisions are all on all nodes.

    `nodes`: with the depot.  A tour has n - 2 decisions: its start is given, and the last stop goes without saying.  A
    solution of V customers has as many for these, V - 1, and one more for each way back to the depot, which nobody
    knows beforehand: they are not counted.
    """
    return tours * (nodes - 2) * decision(nodes + 1)


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
    decisions = solution(c.decision, nodes, beam) if shrinks else rollouts(c.decision, nodes, beam)
    return {
        "gflops_paper": (encoder + beam * solution_paper(c.decision, nodes)) / 1e9,
        "gflops_shrinking": (encoder + decisions) / 1e9,
    }


def revised_path(c: Counts, nodes: int) -> int:
    """Count a path that is built anew: its encoder, and one construction from either end."""
    return c.encoder(nodes) + 2 * _all_sizes(c.decision, 4, nodes)


def revised_tour(c: Counts, n: int, how: Revision | str, blocks: tuple[int, ...]) -> int:
    """Count a tour of n nodes that is revised; unless it is said how, of ten, at a quarter of a block's places."""
    if not isinstance(how, Revision):
        how = Revision(blocks=tuple((nodes, max(1, nodes // 4)) for nodes in blocks), width=10)
    total = 0
    for number, (nodes, iterations) in enumerate(how.blocks):
        tours = how.width * (4 if how.flips == "tours" else 1) if number == 0 or not how.prune else 1
        flips = 4 if how.flips == "blocks" else 1
        total += tours * iterations * (n // nodes) * flips * revised_path(c, nodes)
    return total


#
# A sub-path of w stops has w - 3 decisions of the TSP, on w to 4 tokens (both ends are given, the last choice goes
# without saying), and w - 1 of the CVRP, on w + 1 to 3: its first stop is given, and the depot is a token.


def decisions_of(stops: int, *, cvrp: bool) -> int:
    """Count the decisions of one sub-path."""
    return max(0, stops - (1 if cvrp else 3))


def sub_paths(decision: Flops, lengths: range, *, cvrp: bool) -> Iterator[tuple[int, int]]:
    """(stops, FLOPs of all decisions) of sub-paths of these lengths."""
    last = 3 if cvrp else 4  # tokens of the last decision
    sums = accumulate(decision(k) for k in range(last, lengths.stop + cvrp))
    total = dict(enumerate(sums, last - cvrp))
    yield from ((stops, total.get(stops, 0)) for stops in lengths)


@cache  # many runs are of one network
def trained_sample(decision: Flops, encoder: Flops, lengths: range, step: Step, *, cvrp: bool) -> float:
    """Count the expected cost of one training instance; a backward pass counts as two forward passes.

    The sub-path's length is uniform on `lengths`.  With `decision` only the first decision is trained; `sub-path` and
    `summed` train all and cost the same.  Each decision runs the encoder on all stops, of the CVRP on the depot too.
    """
    if step == "decision":
        total = sum(encoder(stops + cvrp) + decision(stops + cvrp) for stops in lengths)
    else:
        paths = sub_paths(decision, lengths, cvrp=cvrp)
        total = sum(decisions_of(stops, cvrp=cvrp) * encoder(stops + cvrp) + each for stops, each in paths)
    return 3 * total / len(lengths)


def lengths_of(nodes: int, cut: SubPaths = "random", *, cvrp: bool = False) -> range:
    """Lengths of the sub-paths of an instance: 4..n (`random`), 3..n (`suffix`) or 4..n + 1 (`pairs`).

    A suffix of the CVRP may begin at the depot: 3..n + 1.
    """
    more = cut == "pairs" or (cvrp and cut == "suffix")
    return range(3 if cut == "suffix" else min(SHORTEST, nodes), nodes + 1 + more)


@cache
def reconstruction(
    decision: Flops, encoder: Flops, stops: int, longest: int, most_blocks: int | None = None, *, cvrp: bool
) -> float:
    """Count the expected cost of one iteration of parallel local re-construction of so many stops (sit, Alg. 1-4).

    The length of its blocks is uniform on 4 to `longest`; there are as many as fit.
    """
    lengths = lengths_of(longest)
    blocks = ((stops // w, encoder(w + cvrp) + each) for w, each in sub_paths(decision, lengths, cvrp=cvrp))
    return sum((n if most_blocks is None else min(n, most_blocks)) * each for n, each in blocks) / len(lengths)


def trained_lengths(training: Supervised | SelfImprovement | Reconstruction, nodes: int, *, cvrp: bool) -> range:
    """Lengths of the sub-paths that a training draws, all with the same chance."""
    if isinstance(training, Reconstruction):
        return lengths_of(longest_sub_path(training.longest, nodes))
    return lengths_of(nodes, training.sub_paths, cvrp=cvrp)


def decisions_per_batch(run: Run) -> float:
    """Count the decisions that a batch makes one after the other: of sub-paths as expected, else as many as nodes."""
    t = run.training
    if not isinstance(t, Supervised | SelfImprovement | Reconstruction):
        return run.n
    if t.step == "decision":
        return 1
    cvrp = _has_depot(run)
    lengths = trained_lengths(t, run.n, cvrp=cvrp)
    return sum(decisions_of(stops, cvrp=cvrp) for stops in lengths) / len(lengths)


def _has_depot(run: Run) -> bool:
    return run.validation.dataset.problem != "tsp"


def training_per_sample(run: Run) -> float:
    """Count one training instance: forward and backward, and its share of making the solutions it is trained on."""
    c, t, cvrp = counts(run.network), run.training, _has_depot(run)
    if isinstance(t, Reconstruction):
        return _reconstruction_per_sample(c, run.n, t, cvrp=cvrp)
    if isinstance(t, OwnTraining) or hasattr(t, "flops_per_sample"):
        return float(t.flops_per_sample(c, run))
    if isinstance(t, Reinforced):
        return _reinforced_per_sample(c, t, cvrp=cvrp)
    total = trained_sample(c.decision, c.encoder, trained_lengths(t, run.n, cvrp=cvrp), t.step, cvrp=cvrp)
    if isinstance(t, SelfImprovement):  # rounds of beam searches, over the passes that their solution is trained on
        nodes = run.n + cvrp
        total += (c.encoder(nodes) + t.rounds * solution(c.decision, nodes, t.beam)) / t.passes
    return total


def _reconstruction_per_sample(c: Counts, stops: int, training: Reconstruction, *, cvrp: bool) -> float:
    """Count sub-paths, and re-constructions over a round's epochs; greedy first solutions over all epochs."""
    lengths = trained_lengths(training, stops, cvrp=cvrp)
    total = trained_sample(c.decision, c.encoder, lengths, training.step, cvrp=cvrp)
    each = reconstruction(c.decision, c.encoder, stops, lengths[-1], training.most_blocks, cvrp=cvrp)
    total += training.reconstructions * each / training.epochs_per_round
    if training.initial == "greedy":
        nodes = stops + cvrp
        total += (c.encoder(nodes) + solution(c.decision, nodes)) / training.epochs
    return total


def _reinforced_per_sample(c: Counts, training: Reinforced, *, cvrp: bool) -> float:
    """Count the mean over all sizes: solutions are sampled, and all their decisions made once more to be learnt.

    With a greedy baseline its solutions are built too.  Ways back to the depot are not counted.
    """
    total, more = 0.0, not training.shares_baseline
    for stage in training.stages:
        for n, instances in stage.expected_instances().items():
            nodes, moves = n + cvrp, n if cvrp else n - 2
            decisions = stage.starts_of(n) * moves * c.decision(nodes + 1)
            total += instances * stage.images * ((3 + more) * c.encoder(nodes) + (4 + more) * decisions)
    return total / (training.samples * training.epochs)


@dataclass(frozen=True)
class RunFlops:
    """FLOPs of a run's training and of its solutions."""

    run: Run

    def train(self) -> float:
        """Count updates, and the solutions that validations build."""
        t = self.run.training
        starts = t.validated_starts if isinstance(t, Reinforced) else 1
        sets = (self.run.validation, *self.run.also_validation)
        validation = sum(self.construct(labels.dataset, Decoding(starts=starts)) for labels in sets)
        return t.samples * t.epochs * training_per_sample(self.run) + (t.validations + 1) * validation

    def evaluate(self, evaluation: Evaluation) -> float:
        """Count the solutions that an evaluation builds; what else it does is not known beforehand."""
        total = 0.0
        for e in evaluation.measurements:
            pairs = product(self.instances(e), e.decodings) if isinstance(e, BenchmarkEvaluation) else e.solved()
            for dataset, decoding in pairs:
                total += self.construct(dataset, decoding) if decoding.start == "greedy" else 0.0
                total += self.improve(dataset, decoding)
        return total

    def construct(self, dataset: Dataset, decoding: Decoding = GREEDY) -> float:
        """Count the first solutions of all instances."""
        starts = dataset.n if decoding.starts == "all" else decoding.starts
        images = decoding.number_of_images
        # Models that are trained from many starts mask nodes instead of dropping them.
        shrinks = decoding.method == "beam" or not isinstance(self.run.training, Reinforced)
        return (
            decoding.repeats
            * dataset.count
            * self._solution(dataset.nodes, images * starts * decoding.beam, images, shrinks)
        )

    def instances(self, evaluation: BenchmarkEvaluation) -> list[Dataset]:
        """The sizes of a public benchmark's instances, as data sets of one each."""
        e, like = evaluation, self.run.validation.dataset
        depots = int(like.problem != "tsp")
        each = study_instances(e.max_nodes, e.min_nodes, e.benchmark, e.sets, e.names)
        return [like.model_copy(update={"n": k.nodes - depots, "count": 1}) for k in each]

    def improve(self, dataset: Dataset, decoding: Decoding) -> float:
        """Count their re-construction."""
        network = self.run.network
        if decoding.method == "revise":
            blocks = tuple(network.arguments.get("blocks", (100, 50, 20)))
            return dataset.count * revised_tour(counts(network), dataset.n, decoding.revision, blocks)
        if decoding.method == "prc":
            c, longest = counts(network), longest_sub_path(decoding.longest, dataset.n)
            cvrp, most = dataset.problem == "cvrp", decoding.most_blocks
            each = reconstruction(c.decision, c.encoder, dataset.n, longest, most, cvrp=cvrp)
        else:  # a segment has half the nodes on average, and costs go with their square at least
            each = self._solution(decoding.longest or dataset.n) / 3
        return dataset.count * decoding.iterations * each

    def _solution(self, nodes: int, at_a_time: int = 1, images: int = 1, shrinks: bool = True) -> float:
        return per_solution(self.run.network, nodes, at_a_time, images, shrinks=shrinks)["gflops_shrinking"] * 1e9
