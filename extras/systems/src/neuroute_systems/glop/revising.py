"""Training of GLOP's revisers: paths with both ends given, built from either end, by REINFORCE (Ye et al., 2024)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.core.device import stream_seed
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole
from neuroute.datasets.problem_spec import SPEC
from neuroute.decoding.decode import decode, solve_with
from neuroute.decoding.greedy import Decide, complete_paths
from neuroute.decoding.memory import autocast
from neuroute.decoding.revision import builder, rebuild
from neuroute.problems.sub_paths import path_lengths
from neuroute.specs.decodings import Decoding
from neuroute.specs.objects import Dataset
from neuroute.training.batches import Batches, Scheme
from neuroute.training.loop import load_whole
from neuroute_systems.blocks.path_attention import PathAttention, Prepared
from neuroute_systems.glop.network import Glop, fit_to_square
from neuroute_systems.glop.system import Phase, Revising
from neuroute_systems.rollouts.training import BaselinePolicy, running_mean

PATHS_AT_ONCE = 4096  # that are built without gradients
PATHS, CHALLENGES, NOISE = range(3)  # streams of draws, each of a phase


class RevisingBatches(Batches):
    """Batches of a run: each is a function of (run, index), the weights, the moments and the baseline.

    Adam begins anew with each phase.  Each process encodes all of a batch, for its norms are over all of it, and builds
    and learns from its part of the paths.
    """

    training: Revising
    net: Glop

    def __init__(self, scheme: Scheme) -> None:
        super().__init__(scheme)
        self.seed = scheme.run.seed
        self._phase = -1  # whose paths and baseline are at hand
        self._paths: Tensor | None = None  # (samples, block, 2) of a phase whose paths stay
        self._baseline: BaselinePolicy | None = None
        self._mean: Tensor | None = None  # of lengths, in the first epoch of a phase

    # -- what the training loop asks for ------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        return {
            "phase": self._phase,
            "mean": self._mean,
            "baseline": self._baseline.state() if self._baseline else {},
        }

    def restore(self, state: dict[str, Any]) -> None:
        if state["phase"] >= 0:
            self._begin(state["phase"])
            assert self._baseline is not None
            self._baseline.restore(state["baseline"])
            self._mean = state["mean"]

    def learning_rate(self, index: int) -> float:
        number, within = self.training.place(index)
        phase = self.training.phases[number]
        return phase.learning_rate * phase.decay ** (within // phase.batches_per_epoch)

    def samples(self, batches: int) -> int:
        """Paths in the first so many batches."""
        count = 0
        for phase in self.training.phases:
            epochs, within = divmod(min(batches, phase.batches), phase.batches_per_epoch)
            count += epochs * phase.samples + min(within * phase.batch_size, phase.samples)
            batches -= min(batches, phase.batches)
        return count

    def solve(self, instances: np.ndarray) -> np.ndarray:
        """Revised tours (count, n), by which the run is validated."""
        how = Decoding(method="revise", start="insertion", revision=self.training.revision or "usual")
        limits = (self.scheme.memory_gb, self.training.precision)
        return decode("tsp", self.net, instances, how, *limits).numpy()

    def train(self, index: int) -> tuple[Tensor, int]:
        number, within = self.training.place(index)
        phase = self.training.phases[number]
        if within == 0:
            self._begin(number)
            self.optimizer.state.clear()
            about_phase = {"block": phase.block, "paths": phase.source}
            self._notes.append({"kind": "stage", "stage": f"{phase.source}{phase.block}", **about_phase})
        assert self._baseline is not None
        points = self._points(number, within)
        with autocast(self.device, self.training.precision):
            lengths, logs = self._sample(points, stream_seed(self._stream(number, NOISE), within))
            baseline = self._baseline_of(points, lengths, within < phase.batches_per_epoch)
        loss = ((lengths - baseline).to(logs.dtype) * logs).sum() / len(points)
        loss.backward()
        self.world.sum_gradients(self.net.reviser(phase.block))
        self._update(index)
        if (within + 1) % phase.batches_per_epoch == 0:
            self._notes.append({"kind": "baseline", "replaced": self._baseline.challenge()[1]})
        return loss.detach().double() * self.world.size, 1

    # -- a batch ------------------------------------------------------------------------------------------------

    def _sample(self, points: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        """Lengths (2, own), float64, and log-probabilities (2, own) of this process's paths, built from either end."""
        reviser, own_paths, m = self.net.reviser(points.shape[1]), self._part_of(len(points)), points.shape[1]
        prepared = Prepared(*(part[own_paths] for part in reviser.prepare(points)))
        decide = _sampling(reviser, torch.Generator(self.device).manual_seed(seed), len(points), own_paths)
        rows = Prepared(*(part.detach() for part in prepared)).rows()
        orders = complete_paths(decide, torch.cat([rows, rows.flip(1)])).clone()
        points, batch = points[own_paths], len(rows)
        orders = torch.cat([orders[:batch], m - 1 - orders[batch:]])  # places in the path as it was given
        twice = orders[..., None]
        along = Prepared(*(part.repeat(2, 1, 1).gather(1, twice.expand(-1, -1, part.shape[2])) for part in prepared))
        logits = reviser.decide_all(along, _open(m, points.device)).float()
        target = torch.arange(1, m - 2, device=points.device).expand(2 * batch, -1)
        logs = -F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none").view(2, batch, m - 3).sum(-1)
        return _lengths(points, orders).view(2, batch), logs

    def _baseline_of(self, points: Tensor, lengths: Tensor, warm_up: bool) -> Tensor:
        """What sampled lengths (2, own) are compared with: lengths (own,), or one number in the first epoch."""
        assert self._baseline is not None
        if warm_up:
            self._mean = running_mean(self._mean, self.world.gather(lengths.T, len(points)), self.training.warm_up)
            return self._mean
        return greedy_lengths(self._baseline.frozen, points[self._part_of(len(points))]).mean(dim=0)

    def _part_of(self, count: int) -> slice:
        """This process's part of so many paths."""
        part = self.world.part(count)
        return slice(part.start, part.stop)

    def _points(self, number: int, within: int) -> Tensor:
        """The paths (batch, block, 2) of a batch of a phase."""
        phase = self.training.phases[number]
        epoch, batch = divmod(within, phase.batches_per_epoch)
        first = batch * phase.batch_size
        size = min(phase.batch_size, phase.samples - first)
        if self._paths is None:
            return draw_paths(size, phase.block, stream_seed(self._stream(number, PATHS), within)).to(self.device)
        shuffled = torch.Generator().manual_seed(stream_seed(self._stream(number, PATHS), epoch))
        rows = torch.randperm(len(self._paths), generator=shuffled)[first : first + size]
        return fit_to_square(self._paths[rows].to(self.device))

    def _stream(self, number: int, what: int) -> int:
        return (self.seed * len(self.training.phases) + number) * 3 + what

    # -- a phase ------------------------------------------------------------------------------------------------

    def _begin(self, number: int) -> None:
        """Have the phase's paths, if they stay, and a baseline of the weights as they are."""
        phase = self.training.phases[number]
        self._phase = number
        self._paths = self._revised_paths(number) if phase.source == "revised" else None
        count = self.training.baseline_samples

        def costs(reviser: nn.Module, challenge: int) -> np.ndarray:
            """The shorter one of the paths from either end."""
            seed = stream_seed(self._stream(number, CHALLENGES), challenge)
            if self._paths is None:
                points = draw_paths(count, phase.block, seed).to(self.device)
            else:
                rows = torch.randperm(len(self._paths), generator=torch.Generator().manual_seed(seed))[:count]
                points = fit_to_square(self._paths[rows].to(self.device))
            lengths = greedy_lengths(reviser, points[self._part_of(len(points))]).amin(dim=0)
            return self.world.gather(lengths, len(points)).cpu().numpy()  # of paths that stay there may be fewer

        self._baseline = BaselinePolicy(self.net.reviser(phase.block), costs, self.training.significance)
        self._mean = None

    def _revised_paths(self, number: int) -> Tensor:
        """The paths (samples, block, 2) of a phase, made when it begins and kept where a kill leaves them."""
        file = self.scheme.state_dir / f"paths{number}.pt"
        if not self.world.tell(float(file.exists()), self.device):
            paths = self._make_paths(self.training.phases[number])
            if self.world.leads:
                write_whole(file, lambda opened: torch.save(paths, opened))
            self.world.barrier()
        return _load_paths(file)

    def _make_paths(self, phase: Phase) -> Tensor:
        larger = sorted({p.block for p in self.training.phases if p.source == "revised" and p.block > phase.block})
        if not larger:
            return torch.cat(list(self._insertion_paths(phase)))[: phase.samples]
        before = next(p for p in self.training.phases if p.source == "revised" and p.block == larger[0])
        pieces = before.block // phase.block
        count = min(before.samples, -(-phase.samples // pieces))
        paths = self._make_paths(before.model_copy(update={"samples": count}))
        was_training = self.net.training
        self.net.eval()
        revised = self._rebuilt(paths)
        self.net.train(was_training)
        cut = revised[:, : pieces * phase.block].reshape(-1, phase.block, 2)
        return cut[: phase.samples]

    @torch.no_grad()
    def _rebuilt(self, paths: Tensor) -> Tensor:
        """Paths (count, block, 2), revised: by each process its part."""
        parts = []
        for points in paths[self._part_of(len(paths))].split(PATHS_AT_ONCE):
            points = points.to(self.device)
            order = rebuild(builder(self.net, self.net.decide), self.net.encode, points, flips=False)
            parts.append(points.gather(1, order[..., None].expand(-1, -1, 2)))
        return self.world.gather(torch.cat(parts), len(paths)).cpu()

    def _insertion_paths(self, phase: Phase) -> Iterator[Tensor]:
        """As many paths as the phase has, or more: those of random insertion's tours, cut at every place of a block."""
        pieces = phase.nodes // phase.block
        count = -(-phase.samples // (pieces * phase.block))
        coords = SPEC.of("tsp").instances(Dataset(split="train", n=phase.nodes, count=count))
        tours = solve_with("tsp", "insertion", coords, 0)
        along = torch.from_numpy(coords).gather(1, tours[..., None].expand(-1, -1, 2))
        for shift in range(phase.block):
            yield along.roll(-shift, dims=1)[:, : pieces * phase.block].reshape(-1, phase.block, 2)


def draw_paths(count: int, nodes: int, seed: int) -> Tensor:
    """Uniform paths (count, nodes, 2) float32 in boxes 1 wide and of a height from 0 to 1 each; on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    heights = torch.rand(count, 1, generator=generator)
    points = torch.rand(count, nodes, 2, generator=generator)
    return torch.stack([points[..., 0], points[..., 1] * heights], dim=-1)


@torch.no_grad()
def greedy_lengths(reviser: nn.Module, points: Tensor) -> Tensor:
    """Lengths (2, batch), float64, of the greedy paths from either end."""
    assert isinstance(reviser, PathAttention)
    lengths = []
    for part in points.split(PATHS_AT_ONCE):
        rows = reviser.prepare(part).rows()
        there, back = complete_paths(reviser.decide, torch.cat([rows, rows.flip(1)])).chunk(2)
        orders = torch.cat([there, part.shape[1] - 1 - back])
        lengths.append(_lengths(part, orders).view(2, -1))
    return torch.cat(lengths, dim=1)


def _lengths(points: Tensor, orders: Tensor) -> Tensor:
    """points (batch, m, 2), orders (2 batch, m) -> float64 (2 batch,)."""
    return path_lengths(points.double().repeat(2, 1, 1).gather(1, orders[..., None].expand(-1, -1, 2)))


def _open(m: int, device: torch.device) -> Tensor:
    """What decisions 0 to m - 4 of a path may choose, in the order in which they chose: 0, -inf elsewhere."""
    step, node = torch.arange(m - 3, device=device)[:, None], torch.arange(m, device=device)
    closed = (node <= step) | (node == m - 1)
    return torch.zeros(m - 3, m, device=device).masked_fill(closed, -torch.inf)


def _sampling(reviser: PathAttention, generator: torch.Generator, batch: int, own_paths: slice) -> Decide:
    """Decisions, for `own_paths` of a batch from either end, of which the largest is a draw by their probabilities.

    Noise (Gumbel) is drawn of all of the batch, so that it does not hang on how many processes share that.
    """

    def decide(rows: Tensor) -> Tensor:
        logits = reviser.decide(rows)  # (2 own, available)
        noise = logits.new_empty(2, batch, logits.shape[1]).exponential_(generator=generator)
        return logits - noise[:, own_paths].flatten(0, 1).log()

    return decide


def _load_paths(file: Path) -> Tensor:
    try:
        paths: Tensor = load_whole(file)
    except Exception as error:
        raise NeurouteError(f"{file}: unreadable paths ({error}); delete the folder to train anew") from None
    return paths


def revising(scheme: Scheme) -> RevisingBatches:
    """Raises NeurouteError for a network without revisers."""
    scheme.require(Glop)
    return RevisingBatches(scheme)
