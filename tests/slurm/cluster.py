"""A SLURM of one node on this machine: its daemons, and their configuration as a folder; nothing outside it changes."""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo", "scancel")
SBIN = ("/usr/sbin", "/usr/local/sbin")  # often not on the path of users
CPUS = 32  # claimed, however many there are: the jobs are short, and take turns
CONFIG = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
StateSaveLocation={folder}/ctld
SlurmdSpoolDir={folder}/d
JobAcctGatherType=jobacct_gather/linux
AccountingStorageType=accounting_storage/none
KillWait=5
MinJobAge=300
SlurmdParameters=config_overrides
GresTypes=gpu
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1 \\
    RealMemory={memory} Gres=gpu:8
PartitionName=main Nodes={host} Default=YES MaxTime=2-00:00:00 State=UP
PartitionName=short Nodes={host} MaxTime=00:01:00 State=UP
"""
# How Snakemake sends jobs there: by the profile as shipped.
SENT = ("--workflow-profile", "profiles/slurm", "--cores", "16", "--slurm-status-command", "squeue")
# Snakemake's job steps drop SLURM_CONF before they call srun.
SRUN = """#!/bin/sh
SLURM_CONF={folder}/slurm.conf exec {srun} "$@"
"""


def path() -> str:
    return os.pathsep.join([os.environ.get("PATH", ""), *SBIN])


def missing() -> str:
    """What keeps SLURM from running here; "" if nothing does."""
    absent = [name for name in DAEMONS if shutil.which(name, path=path()) is None]
    if absent:
        return f"no {', '.join(absent)} here: apt-get install slurm-wlm munge"
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        return "Snakemake's plugin for SLURM is missing: pip install 'neuroute[slurm]'"
    return "" if os.getuid() == 0 else "the daemons of SLURM need root"


@contextmanager
def one_node(folder: Path, cpus: int = CPUS, memory_mb: int = 512_000) -> Iterator[dict[str, str]]:
    """Run SLURM in a folder; the variables with which commands find it.  It claims to have so much, and eight GPUs.

    Raises TimeoutError if the node does not come up.
    """
    host = _host()
    for part in ("ctld", "d", "run", "log", "bin"):
        (folder / part).mkdir(parents=True)
    (folder / "slurm.conf").write_text(
        CONFIG.format(folder=folder, host=host, cpus=cpus, memory=memory_mb, ports=_ports())
    )
    gres = [f"NodeName={host} Name=gpu File={folder}/gpu[0-7]"]
    for number in range(8):
        os.mknod(folder / f"gpu{number}", 0o20666, os.makedev(1, 3))  # any character device does
    (folder / "gres.conf").write_text("\n".join(gres) + "\n")
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    srun = shutil.which("srun", path=path())
    (folder / "bin" / "srun").write_text(SRUN.format(folder=folder, srun=srun))
    (folder / "bin" / "srun").chmod(0o755)
    places = [f"{folder}/bin", os.path.dirname(sys.executable), path()]
    environment = {"SLURM_CONF": f"{folder}/slurm.conf", "PATH": os.pathsep.join(places)}
    munge = {"key-file": "munge.key", "socket": "run/munge.socket", "pid-file": "run/munged.pid"}
    munge |= {"log-file": "log/munged.log", "seed-file": "run/munge.seed"}
    commands = (
        ["munged", "--force", *(f"--{key}={folder}/{file}" for key, file in munge.items())],
        ["slurmctld", "-c", "-i"],
    )
    try:
        for command in commands:
            subprocess.run(command, check=True, env=os.environ | environment, stdout=subprocess.DEVNULL)
        start_node(environment)
        yield environment
    finally:
        for name in ("slurmd", "slurmctld", "munged"):
            pid = folder / "run" / f"{name}.pid"
            if pid.exists():
                subprocess.run(["kill", pid.read_text().strip()], check=False)


def start_node(environment: dict[str, str]) -> None:
    """Start the node's daemon.  Raises TimeoutError if the node does not come up."""
    command = ["slurmd", "-N", _host()]
    subprocess.run(command, check=True, env=os.environ | environment, stdout=subprocess.DEVNULL)
    for _ in range(60):
        if (state := ask(environment, "sinfo", "-h", "-o", "%t").strip()) in ("idle", "mix"):
            return
        time.sleep(0.5)
    raise TimeoutError(f"the node does not come up: {state}")


def node_pid(environment: dict[str, str]) -> int:
    """The process of the node's daemon."""
    return int(Path(environment["SLURM_CONF"]).with_name("run").joinpath("slurmd.pid").read_text())


def ask(environment: dict[str, str], *command: str) -> str:
    """What a command of SLURM prints.  Raises CalledProcessError if it fails."""
    run = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return run.stdout


def _ports() -> list[int]:
    """Two that nobody uses."""
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in (one, other)]


def _host() -> str:
    return socket.gethostname().split(".")[0]
