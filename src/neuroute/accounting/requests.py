"""What a cluster is asked for, for each job: its estimate with a margin, capped, and more at each attempt."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property

from neuroute.accounting.estimates import Cost, Estimates
from neuroute.plan.objects import GivenRun
from neuroute.plan.plan import Plan

MARGIN = 2.0  # estimates have been off by less, mostly: docs/measured/log.md
LEAST_MINUTES = 10
SHORT_S = 120.0  # jobs that take less are sent together
UNKNOWN_S = 4 * 3600.0  # of a network or a solver without a rate
RETRIES = 2


@dataclass(frozen=True)
class Requests:
    """Of all jobs of a plan: each method takes the stage (labels, train, evaluate) and the id of a job."""

    plan: Plan
    cpus: int  # that one job may have at most

    @cached_property
    def estimates(self) -> Estimates:
        return Estimates(self.plan, self.cpus)

    @cached_property
    def cost(self) -> Callable[[str, str], Cost]:
        """(stage, id) -> the estimate, made once."""
        return cache(lambda stage, name: getattr(self.estimates, stage)(name))

    def seconds(self, stage: str, name: str) -> float:
        seconds = self.cost(stage, name).seconds
        return UNKNOWN_S if math.isnan(seconds) else seconds

    def runtime(self, stage: str, name: str, attempt: int = 1) -> int:
        """Minutes: the estimate with a margin, more at each attempt, and never above what a job may have."""
        minutes = LEAST_MINUTES + math.ceil(MARGIN * self.seconds(stage, name) / 60)
        return min(attempt * minutes, round(60 * self.plan.config.machine.job_hours))

    def mem_mb(self, stage: str, name: str, attempt: int = 1) -> int:
        """Memory: half as much again, and as much more at each attempt, as one may have ended for want of it."""
        return math.ceil(self.cost(stage, name).memory_mb * (0.5 + attempt))

    def retries(self, stage: str, names: Iterable[str]) -> int:
        """How often the longest of these jobs may be started again: as often as its time needs, and for mishaps."""
        longest = max((self.seconds(stage, name) for name in names), default=0.0)
        return RETRIES + math.ceil(MARGIN * longest / (3600 * self.plan.config.machine.job_hours)) - (longest > 0)

    def group(self, stage: str, name: str) -> str | None:
        """Short jobs of one stage that do not hang on each other are sent together; None: a job goes alone.

        Those with a GPU go alone: jobs that are sent together may run at once.
        """
        if self.cost(stage, name).gpus or self.seconds(stage, name) > SHORT_S:
            return None
        return f"{stage}{self._depth(stage, name)}"

    def _depth(self, stage: str, name: str) -> int:
        """How many jobs of the same stage come before it, one after the other."""
        if stage == "train":
            run = self.plan.runs[name]
            start = None if isinstance(run, GivenRun) else run.start
            return 0 if start is None else 1 + self._depth(stage, start.partition("@")[0])
        return int(stage == "evaluate" and self.plan.rescaling_of_evaluation(name) is not None)
