# One job per trained model.  Its resume state lies outside the outputs, keyed by spec, code and data.
def run_gpus(w):
    """GPUs of one training: those that make their own labels run in one process."""
    alone = PLAN.runs[f"{w.paper}/{w.name}"].training.kind in ("self-improvement", "reconstruction")
    return min(GPUS, 1) if alone else GPUS


def launcher(w):
    return f"-m torch.distributed.run --standalone --nproc-per-node {run_gpus(w)}" if run_gpus(w) > 1 else ""


def start_of(w):
    """The weights that a run starts from, where these are not random."""
    start = PLAN.runs[f"{w.paper}/{w.name}"].start
    return [PLAN.run_dir(start) / "model.safetensors"] if start else []


rule train:
    input:
        lambda w: [PLAN.manifest(b) for b in PLAN.bundles_of_run(f"{w.paper}/{w.name}")],
        start_of,
    output:
        f"{PLAN.work}/runs/{{paper}}/{{name}}/model.safetensors",
        f"{PLAN.work}/runs/{{paper}}/{{name}}/log.jsonl",
        f"{PLAN.work}/runs/{{paper}}/{{name}}/run.json",
    params:
        spec=lambda w: PLAN.runs[f"{w.paper}/{w.name}"].canonical(),
        code=lambda w: PLAN.train_code(f"{w.paper}/{w.name}"),
        launch=launcher,
    log:
        f"{PLAN.work}/logs/train/{{paper}}/{{name}}.log",
    threads: PLAN.scale.train_threads
    resources:
        gpu=run_gpus,
    message:
        "train {wildcards.paper}/{wildcards.name}"
    shell:
        "{PYTHON} {params.launch} -m neuroute.cli train {wildcards.paper}/{wildcards.name} --threads {threads} > {log} 2>&1"
