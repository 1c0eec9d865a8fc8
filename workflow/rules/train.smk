# One job per trained model.  Its resume state lies outside the outputs, keyed by spec, code and data.
rule train:
    input:
        training_inputs,
    output:
        [f"{PLAN.work}/runs/{{run}}/{file}" for file in ("model.safetensors", "log.jsonl", "run.json")],
    log:
        f"{PLAN.work}/logs/train/{{run}}.log",
    benchmark:
        f"{PLAN.work}/usage/train/{{run}}.tsv"
    wildcard_constraints:
        run=runs_of("supervised"),
    retries: REQUESTS.retries("train", PLAN.runs)
    group: lambda w: group_of("train", w.run)
    conda:
        "../../environment.yml"
    threads: PLAN.scale.train_threads
    resources:
        gpu=lambda w: REQUESTS.gpus("train", w.run),
        runtime=lambda w, attempt: REQUESTS.runtime("train", w.run, attempt),
        mem_mb=lambda w, attempt: REQUESTS.mem_mb("train", w.run, attempt),
        # Several GPUs of a job are of one node.  Not said of others: jobs that go together would ask for a node each.
        **({"nodes": 1} if GPUS > 1 else {}),
    params:
        spec=lambda w: PLAN.runs[w.run].canonical(),
        code=lambda w: PLAN.train_code(w.run),
        launch=launcher,
    message:
        "train {wildcards.run}"
    shell:
        "python {params.launch} -m neuroute.core.job train {wildcards.run} --threads {threads} > {log} 2>&1"


# These make their own labels.  They come first, as others start from them: runs that hang on each other
# are what takes longest in the end.
use rule train as train_self_improved with:
    wildcard_constraints:
        run=runs_of("self-improvement", "reconstruction", "beam-pool", "revising", "partitioning"),
    priority: 1


use rule train as train_reinforced with:
    output:
        [
            f"{PLAN.work}/runs/{{run}}/{file}"
            for file in ("model.safetensors", "log.jsonl", "run.json", "model.moments.safetensors")
        ],
        directory(PLAN.stages_dir("{run}")),
    wildcard_constraints:
        run=runs_of("reinforce"),
    priority: 2


# Weights that config.yaml gives in place of a training.
rule import_weights:
    output:
        [f"{PLAN.work}/runs/{{run}}/{file}" for file in ("model.safetensors", "log.jsonl", "run.json")],
    log:
        f"{PLAN.work}/logs/train/{{run}}.log",
    wildcard_constraints:
        run=one_of(GIVEN),
    group: lambda w: group_of("train", w.run)
    conda:
        "../../environment.yml"
    resources:
        runtime=lambda w, attempt: REQUESTS.runtime("train", w.run, attempt),
        mem_mb=lambda w, attempt: REQUESTS.mem_mb("train", w.run, attempt),
    params:
        spec=lambda w: PLAN.runs[w.run].canonical(),
        code=lambda w: PLAN.train_code(w.run),
    message:
        "import the weights of {wildcards.run}"
    shell:
        "python -m neuroute.core.job train {wildcards.run} > {log} 2>&1"
