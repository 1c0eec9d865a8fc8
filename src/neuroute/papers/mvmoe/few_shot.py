"""What Figure 5 of paper `mvmoe` follows: the test sets of Table 2 after each epoch, or validations along the way.

Trainings in several stages leave a checkpoint at the end of each, which is tested as the paper tests; of a training in
one stage the log alone tells.
"""

from collections.abc import Iterator

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.roles import FEW, MULTI_TASK, SIZES, X8, run_id
from neuroute.papers.mvmoe.scale import MvmoeScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import Log, Need, tested
from neuroute.plan.objects import StageEvaluation, Test
from neuroute.rendering.cells import MEAN_OF_GAPS
from neuroute.rendering.study import Study


def stages(scale: Scale) -> tuple[str, ...]:
    """Names of the stages of a few-shot training."""
    return tuple(stage.name for stage in scale[MvmoeScale].few_shot.stages)


def needs(scale: Scale) -> Iterator[Need]:
    """The checkpoints before, after each stage and at the end on the problem's test set; of one stage the log."""
    *earlier, _ = stages(scale)
    for method in MULTI_TASK:
        for variant in FEW:
            run = run_id(roles.few(method, variant))
            if not earlier:
                yield Log(run)
                continue
            labels = roles.adapted(scale, variant)
            test = Test(labels=labels, decoding=X8)
            yield StageEvaluation(run=run, stages=tuple(earlier), tests=(test,))
            yield from tested(run, labels, X8)
            yield from tested(run_id(roles.multi(scale, method, SIZES[0])), labels, X8)


def points(study: Study, method: str, variant: str) -> list[tuple[float, int, int, float]]:
    """Return (epoch, batch, instances, mean of the instances' gaps in %) before training and after each stage."""
    scale, run = study.scale, run_id(roles.few(method, variant))
    dataset = roles.adapted(scale, variant).dataset
    *earlier, _ = stages(scale)
    weights = [run_id(roles.multi(scale, method, SIZES[0])), *(f"{run}@{stage}" for stage in earlier), run]
    gaps, epoch, batch, samples = [], 0, 0, 0
    for name, stage in zip(weights, (None, *scale[MvmoeScale].few_shot.stages), strict=True):
        if stage is not None:
            epoch, batch = epoch + stage.epochs, batch + stage.batches
            samples += stage.batches * stage.batch_size
        gap = study.value(MEAN_OF_GAPS, name, dataset, X8)
        if gap is not None:
            gaps.append((float(epoch), batch, samples, gap))
    return gaps
