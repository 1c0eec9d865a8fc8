# One protocol for all (`compare` of config.yaml): networks, solvers and others' results on public instances.  Not a part
# of `all`: `snakemake compare`.  What has been answered lies beside the outputs, so a killed comparison goes on.
rule compare:
    input:
        RULES.compare_inputs,
    output:
        multiext("<results>/compare/table", ".csv", ".md", ".tex", ".html"),
        multiext("<results>/compare/pareto", ".pdf", ".svg", ".png", ".csv", ".json"),
        "<results>/compare/leaderboard.html",
        multiext("<results>/compare/flips", ".pdf", ".svg", ".png", ".csv", ".json"),
        "<results>/compare/records.csv",
    log:
        "<logs>/compare.log",
    benchmark:
        "<work>/usage/compare.tsv"
    retries: 2  # what is answered is kept
    threads: getattr(PLAN.config.block("compare"), "threads", 1)
    resources:
        gpu=min(RULES.gpus, 1),
        attempt=lambda w, attempt: attempt,
    params:
        # Never the same, so that it runs whenever it is asked for: which of its answers hold the job alone finds out, by
        # files of the user's, runs that are finished, code and machine.
        asked=time.time_ns(),
    message:
        "compare"
    shell:
        "python -m neuroute.core.job --read {input:q} --write {output:q} --attempt {resources.attempt} --log {log} -- compare > {log} 2>&1"
