# Public benchmarks: downloaded once, or the user's own copy.  Being offline does not fail: the manifest then says so,
# and the tables show the published numbers alone; `snakemake --forcerun fetch_tsplib` tries again.
rule fetch_tsplib:
    output:
        PLAN.benchmark_manifest("tsplib"),
    params:
        own_copy=PLAN.config.benchmarks_dir,
        code=PLAN.fetch_code("tsplib"),
    log:
        f"{PLAN.work}/logs/fetch/tsplib.log",
    localrule: True
    message:
        "fetch tsplib"
    shell:
        "{PYTHON} -m neuroute.cli fetch tsplib > {log} 2>&1"
