# One job per trained model.  Its resume state lies outside the outputs, keyed by spec, code and data.
rule train:
    input:
        lambda w: [PLAN.manifest(b) for b in PLAN.bundles_of_run(f"{w.paper}/{w.name}")],
    output:
        f"{PLAN.work}/runs/{{paper}}/{{name}}/model.safetensors",
        f"{PLAN.work}/runs/{{paper}}/{{name}}/log.jsonl",
        f"{PLAN.work}/runs/{{paper}}/{{name}}/run.json",
    params:
        spec=lambda w: PLAN.runs[f"{w.paper}/{w.name}"].canonical(),
        code=lambda w: PLAN.train_code(f"{w.paper}/{w.name}"),
        launch=f"-m torch.distributed.run --standalone --nproc-per-node {GPUS}" if GPUS > 1 else "",
    log:
        f"{PLAN.work}/logs/train/{{paper}}/{{name}}.log",
    threads: PLAN.scale.train_threads
    resources:
        gpu=GPUS,
    message:
        "train {wildcards.paper}/{wildcards.name}"
    shell:
        "{PYTHON} {params.launch} -m neuroute.cli train {wildcards.paper}/{wildcards.name} --threads {threads} > {log} 2>&1"
