# Tables, figures and the report, from the records alone.  All drawings share matplotlib's list of fonts, which it makes
# at its first use: `--forcerun render` draws all anew.
rule render:
    output:
        touch("<work>/render.done"),
    log:
        "<logs>/render.log",
    localrule: True
    message:
        "render: list the fonts"
    shell:
        "python -c 'import matplotlib.font_manager' > {log} 2>&1"


rule render_table:
    input:
        rules.render.output,
        RULES.artifact_inputs,
    output:
        multiext("<results>/{artifact}", ".csv", ".md", ".tex", ".json"),
        report("<results>/{artifact}.html", caption="../report/artifact.rst", category=RULES.paper),
    log:
        "<logs>/render/{artifact}.log",
    wildcard_constraints:
        artifact=RULES.artifacts_of("table"),
    localrule: True
    params:
        id=lambda w: RULES.artifact(w).id,
        title=lambda w: RULES.artifact(w).title,
        spec=lambda w: PLAN.shown_spec(RULES.artifact(w).id),
        code=lambda w: PLAN.render_code(RULES.artifact(w).id),
    message:
        "render {params.id}"
    shell:
        "python -m neuroute.core.job --read {input:q} --write {output:q} -- render {params.id} > {log} 2>&1"


use rule render_table as render_figure with:
    output:
        multiext("<results>/{artifact}", ".pdf", ".svg", ".csv", ".json"),
        report("<results>/{artifact}.png", caption="../report/artifact.rst", category=RULES.paper),
    wildcard_constraints:
        artifact=RULES.artifacts_of("figure"),
    localrule: True  # which is not inherited


rule report:
    input:
        RULES.report_inputs(),
    output:
        PLAN.report,
        PLAN.summary,
    log:
        "<logs>/report.log",
    localrule: True
    params:
        code=PLAN.report_code(),
        scale=PLAN.scale.canonical(),
    message:
        "report"
    shell:
        "python -m neuroute.core.job --read {input:q} --write {output:q} -- report > {log} 2>&1"


# Verdicts on all claims, one a row; of kept tables: `neuroute claims --kept docs/measured/laptop`.
rule claims:
    input:
        RULES.report_inputs(),
    output:
        "<results>/claims.csv",
    log:
        "<logs>/claims.log",
    localrule: True
    params:
        code=PLAN.report_code(),
        scale=PLAN.scale.canonical(),
    message:
        "claims"
    shell:
        "python -m neuroute.core.job --read {input:q} --write {output:q} -- claims --out {output} > {log} 2>&1"
