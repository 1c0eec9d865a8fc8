# Networks, solvers and others' results on public instances (`compare` of config.yaml), no part of `all`.  Answers lie
# beside the outputs, so a killed comparison resumes.
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
        asked=time.time_ns(),  # runs whenever it is asked for: the job alone finds out which of its answers hold
    message:
        "compare"
    shell:
        "python -m neuroute.core.job --read {input:q} --write {output:q} --attempt {resources.attempt} --log {log} -- compare > {log} 2>&1"
