# One job per model and group of tests: starting a process costs more than a small test set.
rule evaluate:
    input:
        RULES.evaluation_inputs,
    output:
        multiext("<work>/evaluations/{paper}/{name}/{group}", ".csv", ".npz", ".json"),
    log:
        "<logs>/evaluate/{paper}/{name}/{group}.log",
    benchmark:
        "<work>/usage/evaluate/{paper}/{name}/{group}.tsv"
    retries: 2  # what is measured is kept
    threads: PLAN.scale.evaluate_threads
    group: lambda w: RULES.group("evaluate", evaluation_of(w))
    resources:
        gpu=min(RULES.gpus, 1),
        **RULES.resources("evaluate", evaluation_of),
    params:
        cache=PLAN.cache,
        spec=lambda w: PLAN.evaluations[evaluation_of(w)].canonical(),
        code=lambda w: PLAN.evaluate_code(evaluation_of(w)),
        on=f"{PLAN.config.device}, {PLAN.scale.evaluate_threads} threads, {PLAN.config.memory_gb} GB",  # times depend on it
        **RULES.products(),
    message:
        "evaluate {wildcards.paper}/{wildcards.name} ({wildcards.group})"
    shell:
        "python -m neuroute.core.job --read {input:q} --write {output:q} --cache {params.cache:q} --attempt {resources.attempt} --log {log}"
        " -- evaluate {wildcards.paper}/{wildcards.name}/{wildcards.group} --threads {threads} > {log} 2>&1"
