# One job per trained model.  Its resume state lies outside the outputs, keyed by spec, code and data.
rule train:
    input:
        RULES.training_inputs,
    output:
        expand("<work>/runs/{{run}}/{file}", file=TRAINED),
    log:
        "<logs>/train/{run}.log",
    benchmark:
        "<work>/usage/train/{run}.tsv"
    wildcard_constraints:
        run=RULES.trained_here,
    retries: REQUESTS.retries("train", PLAN.runs)
    group: lambda w: RULES.group("train", w.run)
    priority: lambda w: RULES.urgency(w.run)
    threads: PLAN.scale.train_threads
    resources:
        gpu=lambda w: REQUESTS.cost("train", w.run).gpus,
        **RULES.resources("train", lambda w: w.run),
        # Several GPUs of a job are of one node.  Not said of others: jobs that go together would ask for a node each.
        **({"nodes": 1} if RULES.gpus > 1 else {}),
    params:
        cache=PLAN.cache,
        spec=lambda w: PLAN.runs[w.run].canonical(),
        code=lambda w: PLAN.train_code(w.run),
        launch=launcher,
        **RULES.products(),
    message:
        "train {wildcards.run}"
    shell:
        "python {params.launch} -m neuroute.core.job"
        " --read {input:q} --write {output:q} --cache {params.cache:q} --attempt {resources.attempt} --log {log}"
        " -- train {wildcards.run} --threads {threads} > {log} 2>&1"


# Weights that config.yaml gives in place of a training.
rule import_weights:
    output:
        expand("<work>/runs/{{run}}/{file}", file=TRAINED),
    log:
        "<logs>/train/{run}.log",
    wildcard_constraints:
        run=RULES.imported,
    group: lambda w: RULES.group("train", w.run)
    resources:
        **RULES.resources("train", lambda w: w.run),
    params:
        spec=lambda w: PLAN.runs[w.run].canonical(),
        code=lambda w: PLAN.train_code(w.run),
    message:
        "import the weights of {wildcards.run}"
    shell:
        "python -m neuroute.core.job --write {output:q} -- train {wildcards.run} > {log} 2>&1"


# All trainings, by whichever of these rules, and nothing after them.
rule trained:
    input:
        [PLAN.checkpoint(run) for run in PLAN.runs],
    localrule: True
