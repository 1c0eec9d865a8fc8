# Solutions of instance streams; the shards lie in the label store and survive a failed job.
rule labels:
    output:
        f"{PLAN.work}/labels/{{paper}}/{{name}}.json",
    log:
        f"{PLAN.work}/logs/labels/{{paper}}/{{name}}.log",
    benchmark:
        f"{PLAN.work}/usage/labels/{{paper}}/{{name}}.tsv"
    # They may take all cores: begun late, they would wait for every long job and hold up what hangs on them.
    priority: 3
    retries: 2
    conda:
        "../../environment.yml"
    threads: lambda w: REQUESTS.threads("labels", f"{w.paper}/{w.name}")
    group: lambda w: group_of("labels", f"{w.paper}/{w.name}")
    resources:
        runtime=lambda w, attempt: REQUESTS.runtime("labels", f"{w.paper}/{w.name}", attempt),
        mem_mb=lambda w, attempt: REQUESTS.mem_mb("labels", f"{w.paper}/{w.name}", attempt),
    params:
        spec=lambda w: PLAN.label_jobs[f"{w.paper}/{w.name}"].canonical(),
        code=lambda w: PLAN.label_code(f"{w.paper}/{w.name}"),
    message:
        "labels {wildcards.paper}/{wildcards.name}"
    shell:
        "python -m neuroute.core.job label {wildcards.paper}/{wildcards.name} --workers {threads} > {log} 2>&1"
