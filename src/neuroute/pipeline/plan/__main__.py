"""Count the networks of ./config.yaml, else counted at their first estimate: `python -m neuroute.pipeline.plan`."""

from neuroute.evaluation.flops import counts
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import load_config

if __name__ == "__main__":
    for run in build_plan(load_config(None)).runs.values():
        counts(run.network)
