# The whole product as one DAG: instances -> labels -> training -> evaluation -> tables and figures -> report.
# What there is to do comes from the plan (src/neuroute/plan); the rules only say how each kind of thing is made.  What
# they ask of the plan is one object (src/neuroute/dag/rules.py).
import gc
import time

from snakemake.utils import min_version
from neuroute.dag import hooks
from neuroute.dag.rules import Rules, evaluation_of, launcher
from neuroute.plan.plan import TRAINED

min_version("9.20")
gc.set_threshold(100_000, 20, 20)  # nearly all objects of a plan and a DAG stay: looked through seldom


configfile: "config.yaml"


RULES = Rules.of(workflow, config)
PLAN, REQUESTS = RULES.plan, RULES.requests


pathvars:
    work=str(PLAN.work),
    results=PLAN.config.results_dir,
    logs=f"{PLAN.work}/logs",


wildcard_constraints:
    paper="[a-z]+",
    name=r"[\w.-]+",
    group="[a-z_]+",
    labels=r"[\w.-]+",


rule all:
    default_target: True
    input:
        RULES.drawings(),
        PLAN.report,
    localrule: True  # and so below: `localrules` would not reach rules that another workflow renames (docs/how-to/module.md)


include: "workflow/rules/labels.smk"
include: "workflow/rules/benchmarks.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/render.smk"
include: "workflow/rules/compare.smk"


RULES.begin()


onstart:
    hooks.start(RULES)


onsuccess:
    hooks.succeed(RULES)
