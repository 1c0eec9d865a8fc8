"""Training without labels, on solutions that the network itself finds: sampled anew, or re-constructed in rounds.

What problems share, and the TSP; the CVRP's part is in `cvrp`.

Sampled: imitate the shortest of many solutions of the policy.  After Pirnay and Grimm (2024), "Self-improvement for
neural combinatorial optimization: Sample without replacement, but improvement" (SIGD in scaling, Tables 5 and 6).  Each
epoch draws new instances; the best policy so far samples distinct solutions of each in rounds (decoding/sampling.py);
the shortest serves as the label of one epoch of ordinary next-node training.  Training goes on from the weights in hand
whether or not they became the best.

Re-constructed: rounds on one fixed data set (sit, Algorithm 1).  The best weights so far improve all solutions by
parallel local re-construction, then the network learns from sub-paths of them.
"""

import copy
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.core.arrays import read_arrays
from neuroute.core.device import stream_seed
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.store import load_tours
from neuroute.decoding.decode import Search, construct
from neuroute.decoding.environment import ENVIRONMENT, Batch
from neuroute.decoding.memory import batch_size_for, inference
from neuroute.decoding.sampling import Begin, TourPrefixes, sample_shortest
from neuroute.decoding.tsp import SEARCH, decide_for
from neuroute.networks.base import PathNetwork
from neuroute.networks.weights import are_finite
from neuroute.problems.longest import longest_sub_path
from neuroute.problems.sub_paths import cut, cut_pairs, draw_within
from neuroute.specs.objects import Dataset, Decoding, Reconstruction, SelfImprovement
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


def _forget_before(number: int, folder: Path) -> None:
    """Remove the files of earlier epochs, or rounds, whose number their names begin with."""
    for file in folder.glob("*.npz") if folder.is_dir() else ():
        if int(file.name.partition("-")[0]) < number:
            file.unlink(missing_ok=True)


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
        _forget_before(epoch, self._pages)
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


SAVE_EVERY_S = 30.0
# Nodes of the instances that are re-constructed together: enough to keep the device busy, few enough that one iteration
# on a CPU is soon done and kept.
MAX_NODES_PER_BATCH = {"cpu": 1 << 14, "cuda": 1 << 20}


class ReconstructedSet:
    """A fixed set of instances, all in memory, and the best known solution of each.

    Solutions are re-constructed in parts, kept in files in `<state>/solutions` with the iterations that they have
    behind them, so that a killed run goes on where it was.  Parts change nothing but rounding: draws depend on the
    round and on the number of an instance.

    Raises NeurouteError when labels are missing.
    """

    def __init__(self, scheme: Scheme, search: Search[Any]) -> None:
        self.scheme, self.run, self.search = scheme, scheme.run, search
        self.training: Reconstruction = scheme.training
        self.spec, self.device = spec_of(self.run.validation), scheme.device
        self.count = sum(labels.dataset.count for labels in self.run.data)
        parts = [self.spec.arrays(self.spec.instances(labels.dataset)) for labels in self.run.data]
        self.arrays = tuple(np.concatenate(each) for each in zip(*parts, strict=True))
        labels = [load_tours(labels, scheme.label_dirs) for labels in self.run.data]
        self.solutions = np.concatenate(labels).astype(np.int32)
        self.round = -1  # none yet
        self._files = scheme.state_dir / "solutions"
        self._epoch, self._order = -1, np.empty(0, np.int64)

    def instances(self, rows: slice) -> Any:
        """As the problem's decoding takes them."""
        assert self.spec.from_arrays is not None
        return self.spec.from_arrays([array[rows] for array in self.arrays])

    # -- training data ------------------------------------------------------------------------------------------

    def batch(self, epoch: int, start: int, size: int) -> tuple[np.ndarray, ...]:
        """Instances start..start+size-1 of an epoch, which has an order of its own, and their solutions in int64."""
        if epoch != self._epoch:
            shuffle = np.random.Generator(np.random.Philox(key=[self.run.seed << 32 | epoch, 0]))
            self._epoch, self._order = epoch, shuffle.permutation(self.count)
        rows = self._order[start : start + size]
        return *(array[rows] for array in self.arrays), self.solutions[rows].astype(np.int64)

    def start_round(self, number: int, solutions: np.ndarray) -> None:
        """Go on with a round whose solutions are known; the files of earlier rounds are no longer needed."""
        self.round, self.solutions = number, solutions
        _forget_before(number, self._files)

    # -- re-construction ----------------------------------------------------------------------------------------

    def iterations(self, number: int) -> int:
        """Re-constructions of a round; none of a warm-up."""
        return 0 if self.training.warm_up and number == 0 else self.training.reconstructions

    def improve(self, number: int) -> dict[str, Any]:
        """Begin round `number` with what the network makes of the solutions so far; what the log says of it.

        Raises NeurouteError when the run is asked to stop; what has been done is then kept.
        """
        began, world = time.monotonic(), self.scheme.world
        size = min(max(1, MAX_NODES_PER_BATCH[self.device.type] // self.run.n), -(-self.count // world.size))
        before, after, parts = 0.0, 0.0, []
        slices = [slice(first, min(first + size, self.count)) for first in range(0, self.count, size)]
        by_start = {rows.start: self._improve_part(number, rows) for rows in slices[world.rows(len(slices))]}
        world.barrier()
        for rows in slices:
            # What others have improved lies in their files.
            solutions, length = by_start[rows.start] if rows.start in by_start else self._improve_part(number, rows)
            parts.append(solutions)
            before += length * len(solutions) / self.count
            after += self._mean_length(rows, solutions) * len(solutions) / self.count
        self.start_round(number, np.concatenate(parts))
        seconds = time.monotonic() - began
        log.info(
            "round %d: %d solutions, mean length %.4f before and %.4f after %d re-constructions, %.1f s",
            number, self.count, before, after, self.iterations(number), seconds,
        )  # fmt: skip
        return {
            "kind": "round",
            "round": number,
            "iterations": self.iterations(number),
            "length_before": before,
            "length_after": after,
            "reconstruction_s": round(seconds, 2),
        }

    def _improve_part(self, number: int, rows: slice) -> tuple[np.ndarray, float]:
        """Some of the solutions after all iterations, and their mean length before."""
        t, path = self.training, self._files / f"{number}-{rows.start}-{rows.stop}.npz"
        if path.exists():
            file = read_arrays(path, "delete it to re-construct them anew", "solutions", "done", "before")
            now, finished, before = file["solutions"], int(file["done"]), float(file["before"])
        else:
            now, finished = self._initial(number, rows), 0
            before = self._mean_length(rows, now)
        if finished == self.iterations(number):
            return now, before

        def keep() -> None:
            write_whole(path, lambda file: np.savez(file, solutions=at_hand(), done=finished, before=before))

        saved = last_message = time.monotonic()
        seed = stream_seed(self.run.seed, t.batches + number)  # batches have the numbers below
        solutions = torch.from_numpy(now.astype(np.int64)).to(self.device)

        def at_hand() -> np.ndarray:
            """Fetched only when asked for: the device goes on meanwhile."""
            return solutions.cpu().numpy().astype(np.int32)

        batch = self.search.environment.batch(self.instances(rows), self.device)
        decoding = Decoding(
            method="prc", iterations=t.reconstructions, longest=t.longest, rule=t.rule, most_blocks=t.most_blocks
        )
        improving = self.search.reconstruct(
            self.scheme.net,
            batch,
            solutions,
            decoding,
            self.scheme.memory_gb,
            seed=seed,
            first=rows.start,
            iterations_before=finished,
        )
        with inference(self.device, t.precision):
            for solutions_now in improving:
                solutions, finished = solutions_now, finished + 1
                if self.scheme.stopping():
                    keep()
                    raise NeurouteError(
                        f"stopped by a signal at re-construction {finished} of {t.reconstructions} of instances "
                        f"{rows.start} to {rows.stop - 1}, round {number}; run again to resume"
                    )
                if time.monotonic() - last_message > TELL_EVERY_S:
                    last_message = time.monotonic()
                    log.info(
                        "round %d: instances %d to %d of %d, re-construction %d of %d, mean length %.4f",
                        number, rows.start, rows.stop - 1, self.count, finished, t.reconstructions,
                        self._mean_length(rows, at_hand()),
                    )  # fmt: skip
                if time.monotonic() - saved > SAVE_EVERY_S:
                    keep()
                    saved = time.monotonic()
        keep()
        return at_hand(), before

    def _initial(self, number: int, rows: slice) -> np.ndarray:
        t = self.training
        if number or t.initial == "labels":
            return self.solutions[rows]
        problem, instances = self.run.validation.dataset.problem, self.instances(rows)
        built = construct(problem, self.scheme.net, instances, self.scheme.memory_gb, t.precision)
        return built.numpy().astype(np.int32)

    def _mean_length(self, rows: slice, solutions: np.ndarray) -> float:
        return float(np.mean(self.spec.lengths(self.instances(rows), solutions)))


class Rounds(SupervisedBatches):
    """Supervised batches of a data set that each round improves first, with the best weights so far.

    A batch is a function of (run, index) and of the solutions of its round, which is why these belong to the state.
    The moments of the optimizer go on from round to round, as published, unless they are no numbers any more (the
    paper's Appendix C and its code tell of such trainings).

    Several processes share the re-construction of a round, too.

    Raises NeurouteError when labels are missing, and for sub-paths that instances of this size cannot have.
    """

    search: Search[Any]
    training: Reconstruction

    def __init__(self, scheme: Scheme) -> None:
        self.reconstructed = ReconstructedSet(scheme, self.search)
        self.longest = longest_sub_path(scheme.training.longest, scheme.run.n)
        super().__init__(scheme, self.reconstructed)

    def state(self) -> dict[str, Any]:
        return {"round": self.reconstructed.round, "solutions": torch.from_numpy(self.reconstructed.solutions)}

    def restore(self, state: dict[str, Any]) -> None:
        if state["round"] >= 0:
            self.reconstructed.start_round(state["round"], state["solutions"].cpu().numpy())

    def learning_rate(self, index: int) -> float:
        """Decay counted in epochs, from where earlier trainings have brought it (sit, Table 6)."""
        t = self.training
        return t.learning_rate * t.decay_gamma ** (t.epochs_before + index // t.batches_per_epoch)

    def train(self, index: int) -> tuple[Tensor, int]:
        number = index // self.training.batches_per_round
        if number != self.reconstructed.round:
            self.scheme.net.load_state_dict(self.scheme.best())
            if not are_finite(value for state in self.optimizer.state.values() for value in state.values()):
                log.warning("round %d: the optimizer's moments are not finite; they start anew", number)
                self.optimizer.state.clear()
            self.scheme.net.eval()
            self._notes.append(self.reconstructed.improve(number))
            self.scheme.net.train()
        return super().train(index)


class TourRounds(Rounds):
    """Self-improved training for the TSP (sit, Section 4.3): sub-paths of one length in a batch, 4 to the longest.

    Where they start, and in which direction they are read, each instance draws for itself (Algorithm 4) or, as
    published, the batch does.
    """

    search = SEARCH

    def _sub_path(self, index: int, *arrays: Tensor) -> Tensor:
        coords, tours = arrays
        generator = torch.Generator().manual_seed(stream_seed(self.run.seed, index))
        start, length, backwards = draw_within(generator, self.run.n, self.longest)
        if self.training.starts == "batch":
            return cut(coords, tours, start, length, backwards)
        count = len(tours) if self.world.size == 1 else self._size(index)
        rows = self.world.rows(count)
        starts = torch.randint(self.run.n, (count,), generator=generator)
        turned = torch.randint(2, (count,), generator=generator).bool()
        return cut_pairs(coords, tours, starts[rows], torch.full((count,), length)[rows], turned[rows])
