"""What a run had learnt at the end of its earlier stages (icam, Table 8): their checkpoints on labelled test sets."""

from dataclasses import replace

from neuroute.evaluation.labelled import measure_tests
from neuroute.evaluation.loaded import LoadedModel, load_run
from neuroute.evaluation.records import Arrays, Rows
from neuroute.plan.objects import StageEvaluation


def measure(loaded: LoadedModel, evaluation: StageEvaluation) -> tuple[Rows, Arrays]:
    """Return records of `<run>@<stage>`, and lengths as `labelled.measure` does, each key after "<stage>|".

    The checkpoints of the stages lie in a folder beside the model's.  Raises NeurouteError if one does not fit the run.
    """
    run, rows, lengths = loaded.run, Rows(), Arrays()
    for stage in evaluation.stages:
        checkpoint = loaded.checkpoint.parent / "stages" / f"{stage}.safetensors"
        model = replace(load_run(run, checkpoint, loaded.context), memory_gb=loaded.memory_gb, steps=loaded.steps)
        stage_rows, stage_lengths = measure_tests(model, evaluation.group, evaluation.tests)
        rows += [row | {"run": f"{run.id}@{stage}"} for row in stage_rows]
        lengths |= {f"{stage}|{key}": value for key, value in stage_lengths.items()}
    return rows, lengths
