# One job per model and group of tests: starting a process costs more than a small test set.
rule evaluate:
    input:
        evaluation_inputs,
    output:
        multiext(f"{PLAN.work}/evaluations/{{paper}}/{{name}}/{{group}}", ".csv", ".npz", ".json"),
    log:
        f"{PLAN.work}/logs/evaluate/{{paper}}/{{name}}/{{group}}.log",
    benchmark:
        f"{PLAN.work}/usage/evaluate/{{paper}}/{{name}}/{{group}}.tsv"
    retries: 2  # what is measured is kept
    conda:
        "../../environment.yml"
    threads: PLAN.scale.evaluate_threads
    group: lambda w: group_of("evaluate", f"{w.paper}/{w.name}/{w.group}")
    resources:
        gpu=min(GPUS, 1),
        runtime=lambda w, attempt: REQUESTS.runtime("evaluate", f"{w.paper}/{w.name}/{w.group}", attempt),
        mem_mb=lambda w, attempt: REQUESTS.mem_mb("evaluate", f"{w.paper}/{w.name}/{w.group}", attempt),
    params:
        spec=lambda w: PLAN.evaluations[f"{w.paper}/{w.name}/{w.group}"].canonical(),
        code=lambda w: PLAN.evaluate_code(f"{w.paper}/{w.name}/{w.group}"),
        on=f"{PLAN.config.device}, {PLAN.scale.evaluate_threads} threads, {PLAN.config.memory_gb} GB",  # times depend on it
        **products(),
    message:
        "evaluate {wildcards.paper}/{wildcards.name} ({wildcards.group})"
    shell:
        "python -m neuroute.core.job evaluate {wildcards.paper}/{wildcards.name}/{wildcards.group} --threads {threads} > {log} 2>&1"
