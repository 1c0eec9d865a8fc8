"""What the workflow reads and sets of Snakemake beyond its documented interface: here, and nowhere else.

Also what ends Snakemake before it runs jobs, in a line: options of another one, as in its profile, and Ctrl-C.

`tests/dag/test_engine.py` runs it against the Snakemake that is installed; CI with the oldest one that is promised and,
weekly, with its main branch, too.
"""

import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, TypeVar

from neuroute.core.errors import NeurouteError
from neuroute.core.files import check_folder

T = TypeVar("T")
LOOKS_ONLY = ("-n", "--dry", "--lint", "--unlock", "--touch", "--summary", "--dag", "--rulegraph", "--list", "--report")


def _guarded(read: Callable[..., T]) -> Callable[..., T]:
    """Turn what another Snakemake lacks into one line."""

    @wraps(read)
    def guarded(*arguments: Any) -> T:
        try:
            return read(*arguments)
        except (AttributeError, TypeError, KeyError) as error:
            raise NeurouteError(
                f"Snakemake {version('snakemake')} does not work with this neuroute ({read.__name__}: {error}): pip "
                "install --constraint constraints.txt snakemake"
            ) from None

    return guarded


class Engine:
    """A Snakemake that has read its command line; what is of a DAG is there from `onstart` on."""

    def __init__(self, workflow: Any, command: Iterable[str] = ()) -> None:
        """command: the words of the command line, for what no attribute says."""
        self._workflow, self.command = workflow, list(command or sys.argv[1:])
        self._keep_to_allocation()

    @_guarded
    def _keep_to_allocation(self) -> None:
        """Take no more CPUs on a node than SLURM gave: what came together would want as many as without `share`."""
        given = os.environ.get("SLURM_CPUS_PER_TASK", "")
        if given.isdecimal() and self._workflow.remote_exec and int(given) < (self.cores or 0):
            self._workflow.resource_settings.cores = int(given)
            self._workflow.global_resources["_cores"] = int(given)

    @property
    @_guarded
    def config_files(self) -> list[str]:
        return list(map(str, self._workflow.configfiles))

    @property
    @_guarded
    def cores(self) -> int | None:
        """Of all jobs here together; of one job on a cluster.  None: none is said."""
        return self._workflow.resource_settings.cores  # type: ignore[no-any-return]

    @property
    @_guarded
    def gpus(self) -> int:
        """GPUs that all jobs together may hold: `--resources gpu=N`."""
        return int(self._workflow.global_resources.get("gpu").value or 0)

    @property
    @_guarded
    def at_once(self) -> int:
        """Cores here, jobs on a cluster."""
        settings = self._workflow.resource_settings
        return (settings.cores if self.is_local else settings.nodes) or 1

    @property
    @_guarded
    def is_local(self) -> bool:
        """Whether jobs run on this machine."""
        return bool(self._workflow.local_exec)

    @property
    @_guarded
    def executor(self) -> str:
        return self._workflow.executor_plugin.name  # type: ignore[no-any-return]

    @property
    @_guarded
    def is_touching(self) -> bool:
        return bool(self._workflow.touch)

    @property
    @_guarded
    def is_main(self) -> bool:
        """Whether a user called this process, not another Snakemake."""
        return bool(self._workflow.is_main_process)

    @property
    @_guarded
    def storage(self) -> str:
        """Where `--default-storage-prefix` says that files are; "" for the working folder."""
        settings = self._workflow.storage_settings
        return (settings.default_storage_prefix or "") if settings and settings.default_storage_provider else ""

    def check_storage(self) -> None:
        """Raises NeurouteError if the storage gives no answer, or is a bucket or a folder that is not there."""
        if not (place := self.storage):
            return
        try:
            if self._workflow.storage_settings.default_storage_provider == "fs":
                check_folder(Path(place))
            provider = self._workflow.storage_registry.default_storage_provider
            probe = provider.object(f"{place.rstrip('/')}/neuroute")
            probe.exists()
            has_bucket = getattr(probe, "bucket_exists", lambda: True)()
        except Exception as error:  # of whatever plugin
            reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            raise NeurouteError(
                f"--default-storage-prefix {place}: the storage gives no answer ({reason}); check address and keys"
            ) from None
        if not has_bucket:
            raise NeurouteError(f"--default-storage-prefix {place}: no such bucket; make it, or correct the name")

    @property
    @_guarded
    def starts_jobs(self) -> bool:
        """Whether this process decides what there is to do, and does it.  Options that only look have no attribute."""
        return self.is_main and not any(word.startswith(LOOKS_ONLY) for word in self.command)

    @property
    @_guarded
    def runs_group(self) -> bool:
        """Whether this process runs short jobs that a cluster was sent together, as no attribute says."""
        return (
            bool(self._workflow.remote_exec) and "--local-groupid" in self.command and "--executor" not in self.command
        )

    @property
    @_guarded
    def rules(self) -> list[str]:
        return [rule.name for rule in self._workflow.rules]

    @_guarded
    def needed(self) -> list[Any]:
        """Jobs that are to run, with `rule.name`, `wildcards`, `output`, `log`, `resources`, `threads`, `jobid`."""
        return list(self._workflow.dag.needrun_jobs())

    @_guarded
    def sent(self) -> list[Any]:
        """As `needed`, as a cluster is asked for them: jobs that go together once, which `is_group`; local ones not."""
        dag, jobs = self._workflow.dag, (job for job in self.needed() if not job.is_local)
        return list(dict.fromkeys(dag.get_job_group(job) or job for job in jobs))

    @_guarded
    def finished(self) -> list[Any]:
        """Jobs whose files are there and stay."""
        dag = self._workflow.dag
        return [job for job in dag.jobs if not dag.needrun(job)]

    @_guarded
    def failed(self) -> list[Any]:
        """Jobs that were tried for the last time in vain; of those that a cluster was sent together each."""
        every = [job for each in self._workflow.scheduler.failed for job in getattr(each, "jobs", [each])]
        return sorted(every, key=lambda job: job.jobid)

    @_guarded
    def send_together(self, group: str, size_of: str) -> None:
        """Let jobs of a group go to a cluster together, as many as a profile says of `size_of`.

        In a job that a cluster was sent what came together stays so.
        """
        self._workflow.parent_groupids[group] = size_of
        if self._workflow.remote_exec:
            self._workflow.group_settings.group_components = {size_of: sys.maxsize}

    # -- faster or farther than Snakemake goes by itself; where another one differs, it goes on as it would ----------

    def start_at_once(self) -> None:
        """Lift the limit of jobs a second: with each job that ends it adds a look, a second later, at all that wait."""
        with suppress(AttributeError):
            self._workflow.scheduler.job_rate_limiter = None

    def keep_asking(self) -> None:
        """Let jobs wait where SLURM gives no answer.

        Its plugin (2.8.0) drops all jobs of which a look learns nothing, and Snakemake then waits for ever: as where
        `scontrol` takes ten seconds, so that it asks sacct on a cluster without accounts.
        """
        plugin: Any = sys.modules.get(f"snakemake_executor_plugin_{self.executor}")
        if ask := getattr(plugin, "query_job_status", None):

            async def answer(command: str, log: Any) -> tuple[dict[str, str], float]:
                states, seconds = await ask(command, log)
                return states or {}, seconds or 0.0

            plugin.query_job_status = answer

    def go_on_until_last(self) -> None:
        """`--until evaluate` is all evaluations, also one that another one comes before, as tests that read a sweep."""
        with suppress(AttributeError):
            self._workflow.dag.untilrules.clear()


def refuse(parser: ArgumentParser, message: str) -> NoReturn:
    """End in a line, not in a hundred of usage: what a profile of another Snakemake holds, and where."""
    words = sys.argv[1:]
    keys = [option[2:] for option in re.findall(r"--[\w-]+", message) if option not in words]
    places = [value for option, value in pairwise(words) if option in ("--profile", "--workflow-profile")]
    files = (file for place in [*places, "profiles/default"] for file in Path(place).glob("*.yaml"))
    said = {key: file for file in files for key in keys if re.search(f"^{key}:", file.read_text(), re.MULTILINE)}
    where = "".join(f"{file}: {key}: " for key, file in [*said.items()][:1])
    needed = "pip install 'neuroute[slurm]'" if "'slurm'" in message else "snakemake --help lists what this one knows"
    parser.exit(2, f"error: {where}{message}; {needed}\n")


def say_in_one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say of a Ctrl-C that it was one; all else is Python's to show."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted: no job was running; run the same command again", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)
