"""Training without labels: imitate the shortest of many solutions that the policy samples itself.

After Pirnay and Grimm (2024), "Self-improvement for neural combinatorial optimization: Sample without replacement, but
improvement" (SIGD in scaling, Tables 5 and 6).  Each epoch draws new instances; the best policy so far samples
distinct solutions of each in rounds (decoding/sampling.py); the shortest serves as the label of one epoch of ordinary
next-node training.  Training goes on from the weights in hand whether or not they became the best.  Here is what
problems share, and the TSP; the CVRP's part is in `cvrp`.
"""

import copy
import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from neuroute.core.arrays import read_arrays
from neuroute.core.files import write_whole
from neuroute.datasets.problem_spec import spec_of
from neuroute.decoding.environment import ENVIRONMENT, Batch
from neuroute.decoding.memory import batch_size_for, inference
from neuroute.decoding.sampling import Begin, TourPrefixes, sample_shortest
from neuroute.decoding.tsp import decide_for
from neuroute.networks.base import PathNetwork
from neuroute.specs.objects import Dataset, Decoding, SelfImprovement
from neuroute.training.batches import Scheme
from neuroute.training.supervised import SupervisedBatches

log = logging.getLogger("neuroute.train")
TELL_EVERY_S = 10.0
INSTANCES_PER_PAGE = 256  # instances whose noise comes from one generator; fixed, so that memory changes no solution


class SelfImprovementBatches(SupervisedBatches):
    """Supervised batches whose labels are sampled at the start of each epoch.

    A batch is a function of (run, index) and of the solutions of its epoch, which is why these belong to the state.
    """

    def __init__(self, scheme: Scheme) -> None:
        self.sampled = SampledTrainingSet(scheme, self.prefixes)
        super().__init__(scheme, self.sampled)

    @staticmethod
    def prefixes(net: PathNetwork, batch: Any, tokens: int) -> Begin:
        """What the policy samples of a batch of instances, with at most so many tokens at once."""
        decide, nodes = decide_for(net, Decoding(), batch.coords.shape[1]), net.encode(batch.coords)
        return lambda: TourPrefixes(decide, nodes, tokens)

    def state(self) -> dict[str, Any]:
        return {"epoch": self.sampled.epoch, "solutions": torch.from_numpy(self.sampled.solutions)}

    def restore(self, state: dict[str, Any]) -> None:
        if state["epoch"] >= 0:
            self.sampled.start_epoch(state["epoch"], state["solutions"].cpu().numpy())


class SampledTrainingSet:
    """Instances of the uniform training stream, new ones each epoch, with the solutions sampled for them.

    Solutions are kept in `<state>/sampled` as they come, so that a killed run does not sample a whole epoch again, and
    several processes sample a part of them each.
    """

    def __init__(self, scheme: Scheme, prefixes: Callable[[PathNetwork, Any, int], Begin]) -> None:
        self.run, self.best, self.prefixes = scheme.run, scheme.best, prefixes
        self.training: SelfImprovement = scheme.training
        self.spec, self.environment = spec_of(self.run.validation), ENVIRONMENT.of(self.run.validation.dataset.problem)
        self.device, self.memory_gb, self.world = scheme.device, scheme.memory_gb, scheme.world
        self._policy: Any = copy.deepcopy(scheme.net).eval()
        self._pages = scheme.state_dir / "sampled"
        self.epoch = -1  # none yet
        self.arrays: tuple[np.ndarray, ...] = ()
        self.solutions = np.empty((0, *self.environment.shape(self.run.n)), np.int32)
        self._order = np.empty(0, np.int64)

    def batch(self, epoch: int, start: int, size: int) -> tuple[np.ndarray, ...]:
        """Samples start..start+size-1 of an epoch: the arrays of their instances, and their solutions in int64.

        Each pass over the epoch's instances has its own order.  Samples solutions when the epoch is a new one.
        """
        if epoch != self.epoch:
            self.start_epoch(epoch, self._sample(epoch))
        rows = self._order[start : start + size]
        return *(array[rows] for array in self.arrays), self.solutions[rows].astype(np.int64)

    def start_epoch(self, epoch: int, solutions: np.ndarray) -> None:
        """Go on with an epoch whose solutions are known; the pages of earlier epochs are no longer needed."""
        if self._pages.is_dir():
            for page in self._pages.glob("*.npz"):
                if int(page.name.partition("-")[0]) < epoch:
                    page.unlink(missing_ok=True)
        self.epoch, self.solutions, self.arrays = epoch, solutions, self.spec.arrays(self._instances(epoch))
        shuffles = np.random.Generator(np.random.Philox(key=[self.run.seed << 32 | epoch, 0]))
        passes = [shuffles.permutation(self.training.instances) for _ in range(self.training.passes)]
        self._order = np.concatenate(passes)

    def _instances(self, epoch: int) -> Any:
        """The same for every seed, as labelled training data are."""
        count, like = self.training.instances, self.run.validation.dataset
        fields = {"split": "train", "n": self.run.n, "count": count, "first": epoch * count}
        return self.spec.instances(
            Dataset.model_validate({"problem": like.problem, "capacity": like.capacity} | fields)
        )

    def _sample(self, epoch: int) -> np.ndarray:
        """The shortest sampled solution of each of the epoch's instances: int32 (instances, ...)."""
        t, began, count = self.training, time.monotonic(), self.training.instances
        self._policy.load_state_dict(self.best())
        instances = self._instances(epoch)
        nodes = self.environment.nodes(self.run.n)
        tokens = (nodes + 1) * batch_size_for(self._policy, nodes, Decoding(), self.memory_gb)
        last_message, firsts = began, range(0, count, INSTANCES_PER_PAGE)
        files = [self._pages / f"{epoch}-{page}.npz" for page in range(len(firsts))]
        for page, first in list(enumerate(firsts))[self.world.rows(len(firsts))]:
            if files[page].exists():
                continue
            rows = slice(first, first + INSTANCES_PER_PAGE)
            batch: Batch = self.environment.batch(instances[rows], self.device)
            seeds = np.random.SeedSequence([self.run.seed, epoch, page]).generate_state(1, np.uint64)
            generator = torch.Generator(self.device).manual_seed(int(seeds[0] >> np.uint64(1)))
            with inference(self.device, t.precision):
                begin = self.prefixes(self._policy, batch, tokens)
                tours = sample_shortest(begin, batch.lengths, t.beam, t.rounds, t.sigma, generator)
            shortest = tours.cpu().numpy().astype(np.int32)
            write_whole(files[page], lambda file, shortest=shortest: np.savez(file, solutions=shortest))  # type: ignore[misc]
            if time.monotonic() - last_message > TELL_EVERY_S:
                last_message = time.monotonic()
                log.info("epoch %d: sampled solutions of %d of %d instances", epoch, first + len(shortest), count)
        self.world.barrier()
        whole = (read_arrays(page, "delete it to sample it anew", "solutions") for page in files)
        solutions = np.concatenate([page["solutions"] for page in whole])
        mean, seconds = float(np.mean(self.spec.lengths(instances, solutions))), time.monotonic() - began
        text = "epoch %d: %d instances, the best of %d sampled solutions each, mean length %.4f, %.1f s"
        log.info(text, epoch, count, t.beam * t.rounds, mean, seconds)
        return solutions
