"""One batch of supervised training, under each reading of the paper's "step"."""

import torch
from torch import Tensor, nn

from neuroute.decoding.decode import autocast
from neuroute.plan.objects import Run
from neuroute.problems import sub_paths
from neuroute.training import decisions
from neuroute.training.data import TrainingSet
from neuroute.training.distributed import World


class SupervisedBatches:
    """Trains a constructive model on the sub-paths of labelled tours; every batch is a function of (run, index)."""

    def __init__(
        self,
        run: Run,
        net: nn.Module,
        data: TrainingSet,
        device: torch.device,
        world: World,
        memory_gb: float,
    ) -> None:
        self.run, self.training, self.net = run, run.training, net
        self.data, self.device, self.world, self.memory_gb = data, device, world, memory_gb
        self.optimizer: torch.optim.Optimizer = torch.optim.AdamW(
            net.parameters(),
            lr=self.training.learning_rate,
            weight_decay=self.training.weight_decay,
            fused=device.type == "cuda",
            foreach=device.type != "cuda",
        )

    def learning_rate(self, index: int) -> float:
        """Exponential decay counted in batches (scaling, Table 9), after an optional linear warm-up."""
        t = self.training
        rate = t.learning_rate * t.decay_gamma ** (index // t.decay_every)
        if index < t.warmup_batches:
            rate *= t.warmup_factor + (1 - t.warmup_factor) * index / t.warmup_batches
        return rate

    def train(self, index: int) -> tuple[Tensor, int]:
        """Train on batch `index`.  Returns the sum of the losses (a scalar on the device) and the updates made."""
        epoch, within = divmod(index, self.training.batches_per_epoch)
        size = min(self.training.batch_size, self.training.samples - within * self.training.batch_size)
        coords, tours = self.data.batch(epoch, within * self.training.batch_size, size)
        coords, tours = coords[self.world.rank :: self.world.size], tours[self.world.rank :: self.world.size]
        generator = torch.Generator().manual_seed((self.run.seed << 40) + index)
        start, length, backwards = sub_paths.draw(generator, self.run.n)
        path = sub_paths.cut(
            torch.from_numpy(coords).to(self.device),
            torch.from_numpy(tours).to(self.device),
            start,
            length,
            backwards,
        )
        share = len(path) * self.world.size / size  # ranks may hold unequal parts; DDP averages their gradients
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(index)

        total, updates = torch.zeros((), device=self.device), 0
        rows = decisions.rows(length, self.training.step)
        for row in rows:
            total += self._backward(path, row, share, sync=self.training.step != "summed" or row == rows[-1])
            if self.training.step != "summed" or row == rows[-1]:
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
                updates += 1
        return total / len(rows) * updates, updates

    def _backward(self, path: Tensor, row: int, share: float, sync: bool) -> Tensor:
        """Accumulate the gradient of one decision; returns its loss."""
        total = torch.zeros((), device=self.device)
        parts = list(decisions.micro_batches(path, self._micro_batch(path.shape[1] - row)))
        for i, (part, weight) in enumerate(parts):
            with self.world.sync(self.net, sync and i == len(parts) - 1):
                with autocast(self.device, self.training.precision):
                    loss = decisions.loss(self.net, part, row)
                (loss * (weight * share)).backward()
            total += loss.detach() * weight
        return total

    def _micro_batch(self, tokens: int) -> int:
        """Instances whose activations fit the memory budget: about 14 floats per token, channel and layer."""
        arguments = self.run.network.arguments
        per_instance = 4 * 14 * arguments["width"] * arguments["depth"] * tokens
        return max(1, int(self.memory_gb * 1e9 / per_instance))
