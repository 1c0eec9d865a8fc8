"""A script as a user writes it, typed: test_typed_script.py checks it against the installed package."""

import torch
from torch import Tensor, nn

import neuroute
from neuroute.networks.base import PathNetwork


class MyNet(PathNetwork):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = width, 1, 20
        self.score = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 1))

    def encode(self, coords: Tensor) -> Tensor:
        return coords

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        ends = rows[:, [0, -1]].flatten(1)[:, None].expand(-1, rows.shape[1] - 2, -1)
        scores: Tensor = self.score(torch.cat([rows[:, 1:-1], ends], dim=-1))
        return scores.squeeze(-1)


def study() -> list[float]:
    model = neuroute.train(MyNet, n=20, batches=400, learning_rate=1e-3, callbacks=[neuroute.StopEarly(patience=5)])
    evaluation = neuroute.evaluate(model, neuroute.generate("tsp", 20, 100), reference="lkh")
    comparison = neuroute.compare([model, "lkh"], set="tsplib", max_nodes=100, published="all")
    sweep = neuroute.sweep(MyNet, {"learning_rate": [3e-4, 1e-3]}, seeds=3, n=20, batches=400)
    solution = neuroute.solve("berlin52.tsp", model=model, seconds=5)
    solution.plot("berlin52.svg")
    sweep.plot().savefig("sweep.png")
    model.save("mine.safetensors")
    again = neuroute.load_model("mine.safetensors")
    frames = [each.to_frame() for each in (evaluation, comparison, sweep, solution)]
    print(again.name, solution.cost, solution.gap, *map(len, frames))
    return [float(gap) for gap in frames[0].gap_pct]
