"""Two processes under torchrun end with the weights of one, up to rounding."""

import json
import subprocess
import sys
from pathlib import Path

import torch
from conftest import make_run  # type: ignore[import-not-found]
from safetensors.torch import load_file

from neuroute.training.train import train

SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from conftest import make_run
from neuroute.training.train import train
folder, store = Path(sys.argv[2]), Path(sys.argv[3])
train(make_run(epochs=2), folder / "out", folder / "state", [store], code="c", network_code="n", device="cpu", threads=1)
"""


def test_two_processes_equal_one(tmp_path: Path, store: Path) -> None:
    alone = tmp_path / "alone"
    train(make_run(epochs=2), alone / "out", alone / "state", [store], code="c", network_code="n", device="cpu", threads=1)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    arguments = [str(script), str(Path(__file__).parent), str(tmp_path / "two"), str(store)]
    done = subprocess.run([*launch, *arguments], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    one, two = (load_file(folder / "out" / "model.safetensors") for folder in (alone, tmp_path / "two"))
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-3, atol=1e-5)
    assert json.loads((tmp_path / "two" / "out" / "run.json").read_text())["world_size"] == 2
