# One job per trained model.  Its resume state lies outside the outputs, keyed by spec, code and data.
def run_gpus(w):
    """GPUs of one training: those that make their own labels run in one process."""
    alone = PLAN.runs[w.run].training.kind in ("self-improvement", "reconstruction")
    return min(GPUS, 1) if alone else GPUS


def launcher(w):
    return f"-m torch.distributed.run --standalone --nproc-per-node {run_gpus(w)}" if run_gpus(w) > 1 else ""


# One rule for the runs that leave the same files, and for those that others start from, which come first: runs that
# hang on each other are what takes longest in the end.
ALIKE, AWAITED = {}, {str(r.start).partition("@")[0] for r in PLAN.runs.values()}
for run in PLAN.runs:
    ALIKE.setdefault((PLAN.run_files(run), run in AWAITED), []).append(run)


for (files, first), runs in ALIKE.items():

    rule:
        name:
            "_".join(["train", *(["first"] if first else []), *(f.partition(".")[0] for f in files[len(files) // 2 :])])
        input:
            lambda w: [PLAN.manifest(b) for b in PLAN.label_jobs_of_run(w.run)],
            lambda w: PLAN.files_to_start(w.run),
        output:
            [f"{PLAN.work}/runs/{{run}}/{file}" for file in ("model.safetensors", "log.jsonl", "run.json", *files)],
        wildcard_constraints:
            run="|".join(re.escape(run) for run in runs),
        params:
            spec=lambda w: PLAN.runs[w.run].canonical(),
            code=lambda w: PLAN.train_code(w.run),
            launch=launcher,
        log:
            f"{PLAN.work}/logs/train/{{run}}.log",
        priority: int(first)
        threads: PLAN.scale.train_threads
        resources:
            gpu=run_gpus,
        message:
            "train {wildcards.run}"
        shell:
            "{PYTHON} {params.launch} -m neuroute.cli train {wildcards.run} --threads {threads} > {log} 2>&1"
