# The whole product as one DAG: instances -> labels -> training -> evaluation -> tables and figures -> report.
# What there is to do comes from the plan (src/neuroute/plan); the rules only say how each kind of thing is made.
import contextlib
import json
import os
import re
import sys

from snakemake.exceptions import WorkflowError
from neuroute.core.errors import NeurouteError
from neuroute.core.files import exclusive
from neuroute.plan.build import build_plan
from neuroute.plan.config import CONFIG_ENV, parse_config
from neuroute.plan.preflight import check, gpus


configfile: "config.yaml"


report: "workflow/report/workflow.rst"


def clear(function, *arguments):
    """Call a function of the package; what a user can mend becomes Snakemake's one-line error."""
    try:
        return function(*arguments)
    except NeurouteError as error:
        raise WorkflowError(str(error))


PLAN = clear(lambda: build_plan(parse_config(config)))
os.environ[CONFIG_ENV] = json.dumps(config)  # the jobs read the same config, --config overrides included
GPUS = gpus(PLAN.config)
PYTHON = sys.executable  # jobs run in the environment that runs Snakemake, activated or not


wildcard_constraints:
    paper="[a-z]+",
    name=r"[\w.-]+",
    group="[a-z_]+",


include: "workflow/rules/labels.smk"
include: "workflow/rules/benchmarks.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/render.smk"


RUNNING = contextlib.ExitStack()


onstart:
    clear(check, PLAN)
    # Held until this process ends, however it ends: unlike Snakemake's own lock (profiles/default).
    clear(RUNNING.enter_context, exclusive(PLAN.label_store.parent / ".lock", "Snakemake"))


rule all:
    default_target: True
    localrule: True
    input:
        [f"{PLAN.artifact_stem(a)}.{'csv' if o.kind == 'table' else 'pdf'}" for a, o in PLAN.artifacts.items()],
        PLAN.report,
