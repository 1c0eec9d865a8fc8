# Public benchmarks: downloaded once, or the user's own copy.  Being offline does not fail: the manifest then says so,
# and the tables show the published numbers alone; `snakemake --forcerun fetch_benchmark` tries again.
rule fetch_benchmark:
    output:
        PLAN.benchmark_manifest("{benchmark}"),
    log:
        f"{PLAN.work}/logs/fetch/{{benchmark}}.log",
    wildcard_constraints:
        benchmark="tsplib|cvrplib|solomon",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        own_copy=PLAN.config.benchmarks_dir,
        code=lambda w: PLAN.fetch_code(w.benchmark),
    message:
        "fetch {wildcards.benchmark}"
    shell:
        "python -m neuroute.core.job fetch {wildcards.benchmark} > {log} 2>&1"
