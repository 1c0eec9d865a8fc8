# Solutions of instance streams, one set a job, whoever reads it: its name says all of it.  The shards lie in the label store and survive a failed job.
rule labels:
    input:
        lambda w: PLAN.published_files(w.labels),
    output:
        "<work>/labels/{labels}.json",
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
        mem_mb=lambda w, attempt: REQUESTS.mem_mb("labels", w.labels, attempt),
        share=lambda w, attempt: REQUESTS.share("labels", w.labels, attempt),
    params:
        spec=lambda w: PLAN.label_jobs[w.labels].canonical(),
        code=lambda w: PLAN.label_code(w.labels),
    message:
        "labels {wildcards.labels}"
    shell:
        "python -m neuroute.core.job label {wildcards.labels} --workers {threads} > {log} 2>&1"
