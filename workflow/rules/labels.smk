# Solutions of instance streams, one set a job.  Shards that are solved lie in the label store (--cache FOLDER): a killed
# job resumes, and a longer set begins with what a shorter one has, unlike with Snakemake's own --cache.
rule labels:
    input:
        RULES.published_files,
    output:
        multiext("<work>/labels/{labels}", ".json", ".npz"),
    log:
        "<logs>/labels/{labels}.log",
    benchmark:
        "<work>/usage/labels/{labels}.tsv"
    priority: 3  # first: others wait for them, and one that takes several cores would wait for every long job
    retries: 2
    threads: lambda w: REQUESTS.cost("labels", w.labels).threads
    group: lambda w: RULES.group("labels", w.labels)
    resources:
        **RULES.resources("labels", lambda w: w.labels),
    params:
        cache=PLAN.cache,
        spec=lambda w: PLAN.label_jobs[w.labels].canonical(),
        code=lambda w: PLAN.label_code(w.labels),
    message:
        "labels {wildcards.labels}"
    shell:
        "python -m neuroute.core.job --read {input:q} --write {output:q} --cache {params.cache:q} --attempt {resources.attempt} --log {log}"
        " -- label {wildcards.labels} --workers {threads} > {log} 2>&1"
