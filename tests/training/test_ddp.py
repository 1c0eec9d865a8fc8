"""Two processes under torchrun follow the losses of one, up to rounding."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from neuroute.training.train import Settings, train

from tiny import make_run

SETTINGS = Settings("cpu", threads=1)
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tiny import make_run
from neuroute.training.train import Settings, train
SETTINGS = Settings("cpu", threads=1)
folder, store = Path(sys.argv[2]), Path(sys.argv[3])
train(make_run(epochs=2), folder / "out", folder / "state", [store], SETTINGS, code="c", network_code="n")
"""


def test_two_processes_equal_one(tmp_path: Path, store: Path) -> None:
    alone = tmp_path / "alone"
    train(make_run(epochs=2), alone / "out", alone / "state", [store], SETTINGS, code="c", network_code="n")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    arguments = [str(script), str(Path(__file__).parent), str(tmp_path / "two"), str(store)]
    done = subprocess.run([*launch, *arguments], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    losses = [
        [line["loss"] for line in map(json.loads, (folder / "out" / "log.jsonl").open()) if line["kind"] == "train"]
        for folder in (alone, tmp_path / "two")
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
    assert json.loads((tmp_path / "two" / "out" / "run.json").read_text())["world_size"] == 2
