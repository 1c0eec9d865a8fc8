"""Self-improved training without labels: rounds of re-construction of one fixed data set, and training on it (sit).

Algorithm 1: the best weights so far improve all solutions by parallel local re-construction, then the network learns
from sub-paths of them.  Here is what problems share, and the TSP; the CVRP's part is in `cvrp`.
"""

import logging
import time
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
from neuroute.decoding.memory import inference
from neuroute.decoding.tsp import SEARCH
from neuroute.networks.weights import are_finite
from neuroute.problems.longest import longest_sub_path
from neuroute.problems.sub_paths import cut, cut_pairs, draw_within
from neuroute.specs.objects import Decoding, Reconstruction
from neuroute.training.batches import Scheme
from neuroute.training.supervised import SupervisedBatches

log = logging.getLogger("neuroute.train")
SAVE_EVERY_S = 30.0
TELL_EVERY_S = 10.0
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
        if self._files.is_dir():
            for file in self._files.glob("*.npz"):
                if int(file.name.partition("-")[0]) < number:
                    file.unlink(missing_ok=True)

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
            self._begin_round(number)
        return super().train(index)

    def _begin_round(self, number: int) -> None:
        self.scheme.net.load_state_dict(self.scheme.best())
        if not are_finite(value for state in self.optimizer.state.values() for value in state.values()):
            log.warning("round %d: the optimizer's moments are not finite; they start anew", number)
            self.optimizer.state.clear()
        self.scheme.net.eval()
        self._notes.append(self.reconstructed.improve(number))
        self.scheme.net.train()


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
