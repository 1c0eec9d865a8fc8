"""Training without labels: imitate the shortest of many tours that the policy samples itself.

After Pirnay and Grimm (2024), "Self-improvement for neural combinatorial optimization: Sample without replacement, but
improvement" (SIGD in scaling, Tables 5 and 6).  Each epoch draws new instances; the best policy so far samples
distinct tours of each in rounds (decoding/sampling.py); the shortest serves as the label of one epoch of ordinary
next-node training.  Training goes on from the weights in hand whether or not they became the best.
"""

import copy
import logging
import time
from typing import Any

import numpy as np
import torch

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole
from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.memory import autocast, batch_size_for
from neuroute.decoding.sampling import sample_tours
from neuroute.plan.objects import Dataset, Decoding, SelfImprovement
from neuroute.problems.tsp import tour_length
from neuroute.training.supervised import Scheme, SupervisedBatches

log = logging.getLogger("neuroute.train")
TELL_EVERY_S = 10.0
INSTANCES_PER_PAGE = 256  # instances whose noise comes from one generator; fixed, so that memory changes no tour


class SelfImprovementBatches(SupervisedBatches):
    """Supervised batches whose labels are sampled at the start of each epoch.

    A batch is a function of (run, index) and of the tours of its epoch, which
    is why these belong to the state.  Raises NeurouteError for several processes (each would sample), and for other
    problems than the TSP.
    """

    def __init__(self, scheme: Scheme) -> None:
        run = scheme.run
        if scheme.world.size > 1:
            raise NeurouteError(f"{run.id}: self-improvement trains in one process; set `gpus_per_run: 1`")
        if run.validation.dataset.problem != "tsp":
            raise NeurouteError(f"{run.id}: self-improvement samples tours of the TSP only; train it with labels")
        self.sampled = SampledTrainingSet(scheme)
        super().__init__(scheme, self.sampled)

    def state(self) -> dict[str, Any]:
        return {"epoch": self.sampled.epoch, "tours": torch.from_numpy(self.sampled.tours)}

    def restore(self, state: dict[str, Any]) -> None:
        if state["epoch"] >= 0:
            self.sampled.hold(state["epoch"], state["tours"].cpu().numpy())


class SampledTrainingSet:
    """Instances of the uniform training stream, new ones each epoch, with the tours sampled for them.

    Tours are kept in `<state>/sampled` as they come, so that a killed run does not sample a whole epoch again.
    """

    def __init__(self, scheme: Scheme) -> None:
        run = scheme.run
        if not isinstance(run.training, SelfImprovement):
            raise TypeError(f"{run.id} is no self-improvement")
        self.run, self.training, self.best = run, run.training, scheme.best
        self.device, self.memory_gb = scheme.device, scheme.memory_gb
        self._policy: Any = copy.deepcopy(scheme.net).eval()
        self._pages = scheme.state_dir / "sampled"
        self.epoch = -1  # none yet
        self.coords = np.empty((0, run.n, 2), np.float32)
        self.tours = np.empty((0, run.n), np.int32)
        self.count = run.training.samples
        self._order = np.empty(0, np.int64)

    def batch(self, epoch: int, start: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Samples start..start+size-1 of an epoch: coords (size, n, 2) float32, tours (size, n) int64.

        Each pass over the epoch's instances has its own order.  Samples the tours when the epoch is a new one.
        """
        if epoch != self.epoch:
            self.hold(epoch, self._sample(epoch))
        rows = self._order[start : start + size]
        return self.coords[rows], self.tours[rows].astype(np.int64)

    def hold(self, epoch: int, tours: np.ndarray) -> None:
        """Go on with an epoch whose tours are known; the pages of earlier epochs are no longer needed."""
        if self._pages.is_dir():
            for page in self._pages.glob("*.npy"):
                if int(page.name.partition("-")[0]) < epoch:
                    page.unlink()
        self.epoch, self.tours, self.coords = epoch, tours, self._instances(epoch)
        shuffles = np.random.Generator(np.random.Philox(key=[self.run.seed << 32 | epoch, 0]))
        passes = [shuffles.permutation(self.training.instances) for _ in range(self.training.passes)]
        self._order = np.concatenate(passes)

    def _instances(self, epoch: int) -> np.ndarray:
        """The same for every seed, as labelled training data are."""
        count = self.training.instances
        return dataset_coordinates(Dataset(split="train", n=self.run.n, count=count, first=epoch * count))

    def _sample(self, epoch: int) -> np.ndarray:
        """The shortest sampled tour of each of the epoch's instances: (instances, n) int32."""
        t, n, began = self.training, self.run.n, time.monotonic()
        self._policy.load_state_dict(self.best())
        coords = self._instances(epoch)
        scale = self._policy.attention_scale(n)
        tokens = (n + 1) * batch_size_for(self._policy, n, Decoding(), self.memory_gb)
        tours = np.empty((len(coords), n), np.int32)
        told = began
        for page, first in enumerate(range(0, len(coords), INSTANCES_PER_PAGE)):
            kept = self._pages / f"{epoch}-{page}.npy"
            if kept.exists():
                tours[first : first + INSTANCES_PER_PAGE] = np.load(kept, allow_pickle=False)
                continue
            part = torch.from_numpy(coords[first : first + INSTANCES_PER_PAGE]).to(self.device)
            seeds = np.random.SeedSequence([self.run.seed, epoch, page]).generate_state(1, np.uint64)
            generator = torch.Generator().manual_seed(int(seeds[0] >> np.uint64(1)))
            with torch.inference_mode(), autocast(self.device, t.precision):
                found = sample_tours(
                    lambda rows: self._policy.decide(rows, scale),
                    self._policy.encode(part),
                    part,
                    t.beam,
                    t.rounds,
                    t.sigma,
                    generator,
                    tokens,
                )
            tours[first : first + len(part)] = found.cpu().numpy()
            done = tours[first : first + len(part)]
            write_whole(kept, lambda file, done=done: np.save(file, done))  # type: ignore[misc]
            if time.monotonic() - told > TELL_EVERY_S:
                told = time.monotonic()
                log.info("epoch %d: sampled tours of %d of %d instances", epoch, first + len(part), len(coords))
        log.info(
            "epoch %d: %d instances, the best of %d sampled tours each, mean length %.4f, %.1f s",
            epoch,
            len(coords),
            t.beam * t.rounds,
            float(np.mean(tour_length(coords, tours))),
            time.monotonic() - began,
        )
        return tours


def self_improvement(scheme: Scheme) -> SelfImprovementBatches:
    """Raises NeurouteError for several processes."""
    return SelfImprovementBatches(scheme)
