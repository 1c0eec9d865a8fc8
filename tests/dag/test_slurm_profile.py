"""The profile for SLURM as shipped, on a node without a GPU, with stand-ins for SLURM's commands."""

import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest

from checkout import copy_checkout
from neuroute.plan.preflight import has_gpu

pytestmark = [
    pytest.mark.dag,
    pytest.mark.skipif(
        importlib.util.find_spec("snakemake_executor_plugin_slurm") is None, reason="pip install 'neuroute[slurm]'"
    ),
    pytest.mark.skipif(has_gpu(), reason="this machine has a GPU"),
]
STAND_INS = {
    "sinfo": "print('main*|2-00:00:00|512000|32|gpu:8' if '%G' in sys.argv[-1] else 'main*')",
    "squeue": "",
    "sacct": "sys.exit(1)",
    "scontrol": "sys.exit(1)",
    "sbatch": "open('sent', 'a').write(' '.join(sys.argv[1:]).partition(' --wrap')[0] + '\\n'); sys.exit('full')",
}


def test_as_shipped_it_sends_jobs_that_say_what_they_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, body in STAND_INS.items():
        (commands / name).write_text(f"#!{sys.executable}\nimport sys\n{body}\n")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "checkout").mkdir()
    run = copy_checkout(tmp_path / "checkout", "scaling")
    options = ("--workflow-profile", "profiles/slurm", "--cores", "16", "--config", "device=cuda")
    ended = run("results/table12.csv", *options, check=False)
    assert ended.returncode
    sent = (tmp_path / "checkout" / "sent").read_text().splitlines()
    assert len(sent) == 3  # the labels, which are short, go together; and twice more
    minutes = [int(re.search(r" -t (\d+)", line)[1]) for line in sent]  # type: ignore[index]
    memory = [int(re.search(r" --mem (\d+)", line)[1]) for line in sent]  # type: ignore[index]
    assert minutes == sorted(set(minutes))
    assert memory == sorted(set(memory))
    assert all(" -p main " in line and " --cpus-per-task=" in line and "--gpus" not in line for line in sent)
