"""How often layers are called, however few numbers they see: what is left of a job's time when its FLOPs are few.

A call is one layer's forward pass, or its part of an update.
"""

from dataclasses import dataclass

from neuroute.accounting import flops
from neuroute.accounting.counts import counts
from neuroute.plan.objects import Dataset, Decoding, OwnTraining, Reconstruction, Reinforced, Run, SelfImprovement
from neuroute.problems.longest import longest_sub_path

GREEDY = Decoding()
TOKENS_AT_ONCE = 8192  # on a CPU (decoding/memory.py); a GPU takes up to 4096 rows
ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class CallPrice:
    """Calls for a run's solutions, on a CPU or a GPU."""

    run: Run
    gpu: bool = False

    @property
    def many(self) -> bool:
        """Whether the encoder has all layers, and a decision about one."""
        return isinstance(self.run.training, Reinforced)

    @property
    def depth(self) -> int:
        return int(self.run.network.arguments.get("depth", 6))

    @property
    def encoder(self) -> int:
        """Layers that run once for an instance."""
        return self.depth if self.many else int(counts(self.run.network).encoder(9) > 0)

    @property
    def decision(self) -> int:
        """Layers of a decision.  Masks and gates of the 16 VRPs take the time of three more, as measured at smoke."""
        light = 4 if self.run.validation.dataset.problem == "vrp" else 1
        return light if self.many else self.depth

    def solution(self, decisions: float) -> float:
        """Calls for as many decisions, of however many instances at once."""
        return self.encoder + decisions * self.decision

    def chunks(self, rows: float, nodes: int) -> float:
        """How often a data set is gone through, as it does not fit at once."""
        return max(1.0, rows / ROWS_AT_ONCE if self.gpu else rows * nodes / TOKENS_AT_ONCE)

    def construct(self, dataset: Dataset, decoding: Decoding = GREEDY) -> float:
        """Calls to build the first solutions of all instances."""
        starts = dataset.n if decoding.starts == "all" else decoding.starts
        rows = dataset.count * starts * decoding.beam * decoding.number_of_images
        return decoding.repeats * self.chunks(rows, dataset.nodes) * self.solution(dataset.n)

    def improve(self, dataset: Dataset, decoding: Decoding) -> float:
        """Calls to re-construct them."""
        # Of the longest block, as all go in step; of a segment, which has half the nodes on average.
        prc = decoding.method == "prc"
        decisions = longest_sub_path(decoding.longest, dataset.n) if prc else (decoding.longest or dataset.n) // 2
        return decoding.iterations * self.chunks(dataset.count, dataset.nodes) * self.solution(decisions)


def training_calls(run: Run, *, gpu: bool) -> tuple[float, float]:
    """Calls in updates; and forward, to make what is learnt and to validate."""
    price, t = CallPrice(run, gpu), run.training
    updates = total = 0.0
    if isinstance(t, OwnTraining):
        updates, total = t.calls(price)
    elif isinstance(t, Reinforced):
        for stage in t.stages:
            mean = sum(stage.sizes) / 2
            total += stage.batches * price.solution(mean)  # sampled, then learnt
            updates += stage.batches * price.solution(mean)
    else:
        longest = longest_sub_path(t.longest, run.n) if isinstance(t, Reconstruction) else run.n
        lengths = flops.lengths_of(longest, "random" if isinstance(t, Reconstruction) else t.sub_paths)
        decisions = sum(lengths) / len(lengths) - 1 if t.step != "decision" else 1
        updates = t.batches * price.solution(decisions)
        if isinstance(t, SelfImprovement):
            total += t.epochs * t.rounds * price.chunks(t.instances * t.beam, run.n) * price.solution(run.n)
        if isinstance(t, Reconstruction):
            rebuilt = price.chunks(t.samples, run.n) * price.solution(longest)
            total += t.rounds * t.reconstructions * rebuilt
    starts = Decoding(starts=t.validated_starts) if isinstance(t, Reinforced) else GREEDY
    validations = sum(price.construct(each.dataset, starts) for each in (run.validation, *run.also_validation))
    return updates, total + (t.validations + 1) * validations
