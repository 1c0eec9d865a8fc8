"""The profile for SLURM as shipped, on a node without a GPU, with stand-ins for SLURM's commands."""

import asyncio
import importlib
import importlib.util
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import AsyncMock, MagicMock

import pytest

from checkout import Snakemake, copy_checkout
from neuroute.pipeline.dag.engine import Engine
from neuroute.pipeline.plan.config import has_gpu

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


def checkout(folder: Path, monkeypatch: pytest.MonkeyPatch, sinfo: str, paper: str, **copy: str) -> Snakemake:
    """A copy of the checkout on a node as `sinfo` has it."""
    commands = folder / "bin"
    commands.mkdir()
    for name, body in STAND_INS.items():
        body = body.replace("512000|32|gpu:8", sinfo)
        (commands / name).write_text(f"#!{sys.executable}\nimport sys\n{body}\n")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    (folder / "checkout").mkdir()
    return copy_checkout(folder / "checkout", paper, **copy)


def send(folder: Path, monkeypatch: pytest.MonkeyPatch, sinfo: str, target: str, *more: str, **copy: str) -> list[str]:
    """What sbatch is asked for by a copy of the checkout; it takes nothing."""
    run = checkout(folder, monkeypatch, sinfo, target.split("/")[1] if target.count("/") > 1 else "scaling", **copy)
    ended = run(target, "--workflow-profile", "profiles/slurm", "--cores", "16", *more, check=False)
    assert ended.returncode
    return (folder / "checkout" / "sent").read_text().splitlines()


def numbers(sent: list[str], option: str) -> list[int]:
    return [int(re.search(rf" {option}[ =](\d+)", line)[1]) for line in sent]  # type: ignore[index]


def test_as_shipped_it_sends_jobs_that_say_what_they_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = send(tmp_path, monkeypatch, "512000|32|gpu:8", "results/table12.csv", "--config", "device=cuda")
    assert len(sent) in (3, 6)  # the labels, which are short, go together, sixteen at most; and twice more
    minutes, cpus = numbers(sent, "-t"), numbers(sent, "--cpus-per-task")
    assert max(minutes) == minutes[-len(sent) // 3] > minutes[0]  # more time at each attempt
    assert cpus == sorted(cpus, reverse=True)  # and more memory of each job, so fewer at once
    assert all(" -p main " in line and " --cpus-per-task=" in line and "--gpus" not in line for line in sent)


def test_short_jobs_of_the_default_scale_fit_a_small_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4 CPUs and 8 GB, at each attempt: sixteen at once would ask for 16 CPUs and 30 GB."""
    target, options = "results/pens/table2.csv", ("--config", "device=cpu")
    sent = send(tmp_path, monkeypatch, "8000|4|(null)", target, *options, scale="smoke")
    assert len(sent) > 2
    assert max(numbers(sent, "--cpus-per-task")) <= 4
    assert max(numbers(sent, "--mem")) <= 7000
    assert max(numbers(sent, "-t")) < 3 * 60


def test_a_group_larger_than_any_node_stops_before_the_first_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = checkout(tmp_path, monkeypatch, "8000|1|(null)", "pens")
    profile = ("--workflow-profile", "profiles/slurm", "--config", "device=cpu")
    ended = run("results/pens/table2.csv", *profile, check=False)
    assert ended.returncode
    said = r"^a group of \d+ short jobs asks for \d CPUs, a node of partition main gives 1: set share"
    assert len(re.findall(said, ended.stdout + ended.stderr, re.MULTILINE)) == 1
    assert not (tmp_path / "checkout" / "sent").exists()


def test_jobs_are_not_lost_where_slurm_gives_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under load: `scontrol` is too slow, and sacct, which is then asked, keeps no accounts."""
    plugin = importlib.import_module("snakemake_executor_plugin_slurm")
    monkeypatch.setattr(plugin, "get_min_job_age", lambda: None)
    monkeypatch.setattr(plugin, "query_job_status", AsyncMock(return_value=(None, None)))
    settings = SimpleNamespace(status_attempts=2, init_seconds_before_status_checks=10)
    workflow = SimpleNamespace(executor_settings=settings, executor_plugin=SimpleNamespace(name="slurm"))
    Engine(workflow).keep_asking()
    executor = MagicMock(
        workflow=workflow,
        status_rate_limiter=AsyncMock(),
        next_seconds_between_status_checks=10,
        _status_query_calls=0,
        _status_query_total_seconds=0.0,
        _status_query_min_seconds=0.0,
        _status_query_max_seconds=0.0,
        **{"get_status_command.return_value": "squeue"},
    )
    jobs = [SimpleNamespace(external_jobid=job, aux={}) for job in ("1", "2")]

    async def look() -> list[SimpleNamespace]:
        return [job async for job in plugin.Executor.check_active_jobs(executor, jobs)]

    assert asyncio.run(look()) == jobs
