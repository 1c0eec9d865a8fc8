# Public benchmarks beyond the packaged instances: downloaded once, or the user's own copy.  Offline, the manifest says
# what is missing, and the next run with a network tries again (Rules.begin).
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
