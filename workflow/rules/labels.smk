# Solutions of instance streams, one set a job, whoever reads it: its name says all of it.  Shards that are
# solved so far lie in the label store (--cache FOLDER) and survive a failed job.  Snakemake's own --cache would keep
# whole sets alone: the store goes on where a killed job was, and a longer set begins with what a shorter one has.
rule labels:
    input:
        RULES.published_files,
    output:
        multiext("<work>/labels/{labels}", ".json", ".npz"),
    log:
        "<logs>/labels/{labels}.log",
    benchmark:
        "<work>/usage/labels/{labels}.tsv"
    # First, as others hang on them; and one that takes several cores would wait for every long job that began before.
    priority: 3
    retries: 2
    threads: lambda w: REQUESTS.cost("labels", w.labels).threads
    group: lambda w: RULES.group("labels", w.labels)
    resources:
        runtime=lambda w, attempt: REQUESTS.runtime("labels", w.labels, attempt),
        attempt=lambda w, attempt: attempt,  # of which one that failed by itself is the last (core/job.py)
        mem_mb=lambda w, attempt: REQUESTS.mem_mb("labels", w.labels, attempt),
        share=lambda w, attempt: REQUESTS.share("labels", w.labels, attempt),
    params:
        cache=PLAN.cache,
        spec=lambda w: PLAN.label_jobs[w.labels].canonical(),
        code=lambda w: PLAN.label_code(w.labels),
    message:
        "labels {wildcards.labels}"
    shell:
        "python -m neuroute.core.job --read {input:q} --write {output:q} --cache {params.cache:q} --attempt {resources.attempt} --log {log}"
        " -- label {wildcards.labels} --workers {threads} > {log} 2>&1"
