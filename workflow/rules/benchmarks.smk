# Public benchmarks beyond the instances that come with the package: downloaded once, or the user's own copy.  Being
# offline does not fail: the manifest then says so, tables show what there is, and the next run with a network tries
# again (Rules.begin), which reruns nothing unless something came.
rule fetch_benchmark:
    input:
        RULES.own_instances,
    output:
        PLAN.benchmark_manifest("{benchmark}"),
    log:
        "<logs>/fetch/{benchmark}.log",
    wildcard_constraints:
        benchmark="tsplib|cvrplib|solomon|national|vlsi|dimacs",
    localrule: True
    params:
        own_copy=PLAN.config.benchmarks_dir,
        code=lambda w: PLAN.fetch_code(w.benchmark),
    message:
        "fetch {wildcards.benchmark}"
    shell:
        "python -m neuroute.core.job --read {input:q} --write {output:q} -- fetch {wildcards.benchmark} > {log} 2>&1"
