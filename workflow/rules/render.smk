# Tables, figures and the report: seconds each, from the records alone.  Without Snakemake, `neuroute render sit` draws
# all of a paper in one process.
# What all drawings share: matplotlib's list of fonts, which it makes at its first use.  `--forcerun render` draws all anew.
rule render:
    output:
        touch(f"{PLAN.work}/render.done"),
    log:
        f"{PLAN.work}/logs/render.log",
    localrule: True
    conda:
        "../../environment.yml"
    message:
        "render: list the fonts"
    shell:
        "python -c 'import matplotlib.font_manager' > {log} 2>&1"


rule render_table:
    input:
        rules.render.output,
        artifact_inputs,
    output:
        multiext(f"{PLAN.config.results_dir}/{{artifact}}", ".csv", ".md", ".tex", ".html", ".json"),
    log:
        f"{PLAN.work}/logs/render/{{artifact}}.log",
    wildcard_constraints:
        artifact=artifacts_of("table"),
    localrule: True
    conda:
        "../../environment.yml"
    params:
        id=lambda w: artifact_at(w).id,
        spec=lambda w: PLAN.shown_spec(artifact_at(w).id),
        code=lambda w: PLAN.render_code(artifact_at(w).id),
    message:
        "render {params.id}"
    shell:
        "python -m neuroute.core.job render {params.id} > {log} 2>&1"


use rule render_table as render_figure with:
    output:
        multiext(f"{PLAN.config.results_dir}/{{artifact}}", ".pdf", ".svg", ".png", ".csv", ".json"),
    wildcard_constraints:
        artifact=artifacts_of("figure"),
    localrule: True  # which is not inherited


rule report:
    input:
        drawn(PLAN.artifacts.values()),
    output:
        PLAN.report,
        PLAN.summary,
    log:
        f"{PLAN.work}/logs/report.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        code=PLAN.report_code(),
        scale=PLAN.scale.canonical(),
    message:
        "report"
    shell:
        "python -m neuroute.core.job report > {log} 2>&1"


# Verdicts on all claims, one a row, by the records of this scale: `snakemake claims`.  Those of kept tables: `neuroute
# claims --kept docs/measured/laptop`.
rule claims:
    input:
        drawn(PLAN.artifacts.values()),
    output:
        f"{PLAN.config.results_dir}/claims.csv",
    log:
        f"{PLAN.work}/logs/claims.log",
    localrule: True
    conda:
        "../../environment.yml"
    params:
        code=PLAN.report_code(),
        scale=PLAN.scale.canonical(),
    message:
        "claims"
    shell:
        "python -m neuroute.core.job claims --out {output} > {log} 2>&1"
