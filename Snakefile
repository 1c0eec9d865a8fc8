# The whole product as one DAG: instances -> labels -> training -> evaluation -> tables and figures -> report.
# What there is to do comes from the plan (src/neuroute/plan); the rules only say how each kind of thing is made.
import contextlib
import gc
import json
import math
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import neuroute
from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.utils import min_version
from neuroute.plan.estimates import Estimates
from neuroute.plan.overview import is_replaced
from neuroute.dag.slurm import PROFILE, JobRequest, check_jobs, check_orphans
from neuroute.core.errors import NeurouteError
from neuroute.core.files import check_folder, exclusive, write_json
from neuroute.core.job import SOCKET_ENV
from neuroute.core.private import scratch_folder
from neuroute.datasets.benchmarks import instance_file, published_instances
from neuroute.plan.stand_ins import check_solvers, settle
from neuroute.plan.build import build_plan
from neuroute.dag.headlines import headlines
from neuroute.plan.config import CONFIG_ENV, PLANNED_ENV, parse_config
from neuroute.specs.objects import GivenRun, formats
from neuroute.plan.plan import MOMENTS, TRAINED
from neuroute.dag.targets import ExplainTargets
from neuroute.plan.preflight import check, check_gpus, gpus, has_gpu, without_gpu
from neuroute.core.yaml_files import read_yaml

min_version("9.20")
gc.set_threshold(100_000, 20, 20)  # nearly all objects of a plan and a DAG stay: looked through seldom


configfile: "config.yaml"


include: "workflow/rules/common.smk"


for file in workflow.configfiles:
    clear(read_yaml, Path(file))  # what Snakemake says nothing of: a key that comes twice
PLAN = clear(lambda: settle(build_plan(parse_config(config, config_files()))))
config["substitutes"] = PLAN.config.substitutes  # settled once: a solver that comes or goes meanwhile changes no job
GPUS = gpus(PLAN.config)
# What jobs ask a cluster for.  `--cores` is what one of them may have there; here, what all of them share.
REQUESTS = Estimates(PLAN, workflow.resource_settings.cores or 16)
GIVEN = [run for run, r in PLAN.runs.items() if isinstance(r, GivenRun)]
RUNNING = contextlib.ExitStack()
os.environ.pop(SOCKET_ENV, None)  # of the machine that sent this job, if it was sent
os.environ[CONFIG_ENV] = json.dumps(config)  # the jobs read the same config, --config overrides included
# Jobs run the code that planned them, in the environment that runs Snakemake, activated or not.
os.environ.update(
    PATH=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
    PYTHONPATH=os.pathsep.join([*source_folder(), *filter(None, [os.environ.get("PYTHONPATH")])]),
)


wildcard_constraints:
    paper="[a-z]+",
    name=r"[\w.-]+",
    group="[a-z_]+",
    labels=r"[\w.-]+",


rule all:
    default_target: True
    input:
        drawn(PLAN.artifacts.values()),
        PLAN.report,
    localrule: True


include: "workflow/rules/labels.smk"
include: "workflow/rules/benchmarks.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/render.smk"
include: "workflow/rules/compare.smk"


logger.addFilter(ExplainTargets(PLAN, [rule.name for rule in workflow.rules]))
fetch_what_was_missing()
if runs_group():
    start_warm_process()  # hooks are for the process that sends jobs


onstart:
    clear(check, PLAN)
    if workflow.local_exec:
        # Its limit of jobs a second adds, with each job that ends, one look a second at all that is ready.
        workflow.scheduler.job_rate_limiter = None
        clear(check_gpus, PLAN.config, gpus_at_once())
        if note := without_gpu(PLAN.config, sys.argv):
            logger.warning(note)
    else:
        check_cluster()
    say_expected()
    check_replaced()
    clear(check_label_jobs)
    clear(check_weights)
    clear(check_networks)
    # Held until this process ends, however it ends: unlike Snakemake's own lock (profiles/default).
    clear(RUNNING.enter_context, exclusive(PLAN.label_store.parent / ".lock", "Snakemake"))
    hand_over_plan()
    start_warm_process()
    # What Snakemake is to run until never starts after another of its kind, as tests that read a sweep before them.
    workflow.dag.untilrules.clear()


onsuccess:
    if PLAN.summary.exists():
        lines = ["", *clear(headlines, PLAN), f"Report: {PLAN.report}"]
        logger.info("\n".join(lines), extra={"shown": True})  # beside the line of the logger `neuroute`, too
