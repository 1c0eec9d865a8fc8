# Solutions of instance streams; the shards lie in the label store and survive a failed job.
def label_job_spec(w):
    """What is to be solved; stops the workflow here, before any job, when a solver for it is missing."""
    job = f"{w.paper}/{w.name}"
    if not PLAN.manifest(job).exists():
        from neuroute.datasets.labels import check_solvers  # loads numpy, so only where it is needed

        clear(check_solvers, PLAN, job)
    return PLAN.label_jobs[job].canonical()


rule labels:
    output:
        f"{PLAN.work}/labels/{{paper}}/{{name}}.json",
    params:
        spec=label_job_spec,
        code=lambda w: PLAN.label_code(f"{w.paper}/{w.name}"),
    log:
        f"{PLAN.work}/logs/labels/{{paper}}/{{name}}.log",
    threads: PLAN.config.label_workers or workflow.cores or 1
    priority: 2  # they take all cores: begun late, they would wait for every long job and hold up what hangs on them
    message:
        "labels {wildcards.paper}/{wildcards.name}"
    shell:
        "{PYTHON} -m neuroute.cli label {wildcards.paper}/{wildcards.name} --workers {threads} > {log} 2>&1"
