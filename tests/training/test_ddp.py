"""Two processes under torchrun follow the losses of one, up to rounding."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tiny import log_lines, make_run, run_training

SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tiny import make_run, run_training
run_training(make_run(epochs=2), Path(sys.argv[2]), Path(sys.argv[3]))
"""


def test_two_processes_equal_one(tmp_path: Path, store: Path) -> None:
    alone = run_training(make_run(epochs=2), tmp_path / "alone", store)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    arguments = [str(script), str(Path(__file__).parent), str(tmp_path / "two"), str(store)]
    done = subprocess.run([*launch, *arguments], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    together = tmp_path / "two" / "out"
    losses = [[line["loss"] for line in log_lines(out, "train")] for out in (alone, together)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
    assert json.loads((together / "run.json").read_text())["world_size"] == 2
