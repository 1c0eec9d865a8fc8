"""The runs of config.yaml's `sweep` as a paper of their own: trained, measured, tabled and drawn by the DAG."""

from collections.abc import Mapping
from typing import Any

from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.yaml_files import put, validate
from neuroute.pipeline.plan.changes import change_network
from neuroute.pipeline.plan.config import Config, RunChange, Scale
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.papers import borrow_runs, load_paper
from neuroute.pipeline.plan.shapes import SWEEP, Sweep
from neuroute.specs.objects import Decoding, Labels, Run


def runs(config: Config, scale: Scale) -> list[Run]:
    """Return each point's run, and before them those that they start from.

    Raises NeurouteError for a run that is not declared or is not trained as this package's networks are, and for keys
    and values that `runs` of config.yaml would not take.
    """
    sweep, where = scale[Sweep], f"{config.where}: sweep"
    paper = load_paper(sweep.run.partition("/")[0])
    declared = {run.id: run for run in (paper.lends or paper.runs)(config, scale)}
    if sweep.run not in declared:
        raise NeurouteError(f"{where}.run: no run {sweep.run}{did_you_mean(near(sweep.run, declared))}")
    if ":" in declared[sweep.run].training.kind:
        raise NeurouteError(f"{where}.run: {sweep.run} is trained and decoded by its system's own code; sweep another")
    every: dict[str, Run] = {}
    for point in sweep.points:
        *before, run = borrow_runs(_changed(config, sweep, point), scale, [sweep.run])
        run = change_network(_changed(config, sweep, point), run)
        run = run.model_copy(update={"paper": SWEEP, "name": sweep.name_of(point), "role": {}})
        every |= {each.id: each for each in (*before, run)}
    return list(every.values())


def _changed(config: Config, sweep: Sweep, point: Mapping[str, Any]) -> Config:
    """Return the config with a point's values, as if `runs` had them."""
    change = config.runs.get(sweep.run, RunChange()).model_dump(exclude_unset=True)
    for key, value in point.items():
        put(change, key.split("."), value, f"{config.where}: sweep.grid.{key}")
    changed = validate(RunChange, change, f"{config.where}: sweep.grid")
    return config.model_copy(update={"runs": config.runs | {sweep.run: changed}})


def points(scale: Scale) -> list[tuple[dict[str, Any], Run]]:
    """Each point of the grid with its run, as it is declared."""
    sweep = scale[Sweep]
    of_name = {run.name: run for run in runs(Config(), scale) if run.paper == SWEEP}
    return [(point, of_name[sweep.name_of(point)]) for point in sweep.points]


def tests(scale: Scale, run: Run) -> list[Labels]:
    """What a point is tested on: instances like those that its training validates on, but others."""
    count = scale[Sweep].test_count
    sets = []
    for labels in (run.validation, *run.also_validation):
        change = {"split": "test", "count": count or labels.dataset.count}
        sets.append(labels.model_copy(update={"dataset": labels.dataset.model_copy(update=change)}))
    return sets


def decoding(run: Run) -> Decoding:
    """How a point is tested: as its training validates."""
    return Decoding(starts=getattr(run.training, "validated_starts", 1))


PAPER = Paper(key=SWEEP, title="The sweep of config.yaml", scale=Sweep, runs=runs, optional=True)
