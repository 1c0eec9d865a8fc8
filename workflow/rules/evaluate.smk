# One job per model and group of tests: starting a process costs more than a small test set.
rule evaluate:
    input:
        lambda w: PLAN.checkpoints_of_evaluation(f"{w.paper}/{w.name}/{w.group}"),
        lambda w: [PLAN.manifest(b) for b in PLAN.label_jobs_of_evaluation(f"{w.paper}/{w.name}/{w.group}")],
        lambda w: [
            PLAN.benchmark_manifest(b) for b in PLAN.benchmarks_of_evaluation(f"{w.paper}/{w.name}/{w.group}")
        ],
        lambda w: [f for f in [PLAN.rescaling_of_evaluation(f"{w.paper}/{w.name}/{w.group}")] if f],
    output:
        f"{PLAN.work}/evaluations/{{paper}}/{{name}}/{{group}}.csv",
        f"{PLAN.work}/evaluations/{{paper}}/{{name}}/{{group}}.npz",
    params:
        spec=lambda w: PLAN.evaluations[f"{w.paper}/{w.name}/{w.group}"].canonical(),
        code=lambda w: PLAN.evaluate_code(f"{w.paper}/{w.name}/{w.group}"),
        on=f"{PLAN.config.device}, {PLAN.scale.evaluate_threads} threads, {PLAN.config.memory_gb} GB",  # times depend on it
    log:
        f"{PLAN.work}/logs/evaluate/{{paper}}/{{name}}/{{group}}.log",
    threads: PLAN.scale.evaluate_threads
    resources:
        gpu=min(GPUS, 1),
    message:
        "evaluate {wildcards.paper}/{wildcards.name} ({wildcards.group})"
    shell:
        "{PYTHON} -m neuroute.cli evaluate {wildcards.paper}/{wildcards.name}/{wildcards.group} --threads {threads} > {log} 2>&1"
