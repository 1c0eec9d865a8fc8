"""The attention model with the weights that its authors published (MIT), beside their code's greedy tours."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from neuroute.decoding.decode import decode
from neuroute.networks.import_weights import import_weights
from neuroute.networks.weights import load_checkpoint
from neuroute.problems.tsp import tour_length
from neuroute.specs.objects import Decoding
from published_numbers import state

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(("n", "mean"), [(20, 3.86712), (100, 8.0868)])
def test_published_weights_give_the_published_tours(
    public: Callable[[str], Path], tmp_path: Path, n: int, mean: float
) -> None:
    """Files of before PyTorch 0.4.1: their norms have counted no batches."""
    numbers = dict(np.load(public("refdata/systems/am.npz")))
    theirs = state(numbers, f"state{n}/")
    assert not any(name.endswith("num_batches_tracked") for name in theirs)
    torch.save({"model": theirs}, tmp_path / "epoch-99.pt")
    said = import_weights(tmp_path / "epoch-99.pt", tmp_path / "ours.safetensors", None, {})
    assert "laid out as the attention model" in said
    net = load_checkpoint(tmp_path / "ours.safetensors")[0].eval()
    assert sum(p.numel() for p in net.parameters()) == 708_608
    coords = numbers[f"x{n}"]
    tours = decode("tsp", net, coords, Decoding(method=net.own_method)).numpy()
    np.testing.assert_array_equal(tours, numbers[f"pi{n}"])
    lengths = [tour_length(points, tour) for points, tour in zip(coords, tours, strict=True)]
    np.testing.assert_allclose(lengths, numbers[f"c{n}"], rtol=1e-5)
    assert np.mean(lengths) == pytest.approx(mean, abs=5e-5)


def test_other_methods_begin_at_node_0(public: Callable[[str], Path], tmp_path: Path) -> None:
    numbers = dict(np.load(public("refdata/systems/am.npz")))
    torch.save({"model": state(numbers, "state20/")}, tmp_path / "a.pt")
    import_weights(tmp_path / "a.pt", tmp_path / "b.safetensors", "attention-model", {})
    net = load_checkpoint(tmp_path / "b.safetensors")[0].eval()
    for how in (Decoding(), Decoding(method="beam", beam=4)):
        tours = decode("tsp", net, numbers["x20"][:10], how).numpy()
        assert (tours[:, 0] == 0).all()
        assert (np.sort(tours) == np.arange(20)).all()
