"""An executor whose jobs share no folder with the Snakemake that sends them, as in a cloud: each has an empty one.

ELSEWHERE names where these folders are made.
"""

import os
import subprocess
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=True,
    job_deploy_sources=True,
    auto_deploy_default_storage_provider=False,  # which needs a network
)


class Executor(RemoteExecutor):  # type: ignore[misc]  # Snakemake's own has no types
    def __post_init__(self) -> None:
        self.next_seconds_between_status_checks = 1

    def run_job(self, job: JobExecutorInterface) -> None:
        folder = Path(tempfile.mkdtemp(dir=os.environ["ELSEWHERE"]))
        with (folder / "log").open("w") as log:
            command = self.format_job_exec(job)
            process = subprocess.Popen(command, shell=True, cwd=folder, stdout=log, stderr=log)
        self.report_job_submission(SubmittedJobInfo(job, external_jobid=str(folder), aux={"process": process}))

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]) -> AsyncGenerator[SubmittedJobInfo, None]:
        for job in active_jobs:
            status = job.aux["process"].poll()
            if status is None:
                yield job
            elif status:
                self.report_job_error(job, aux_logs=[f"{job.external_jobid}/log"])
            else:
                self.report_job_success(job)

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        for job in active_jobs:
            job.aux["process"].kill()
