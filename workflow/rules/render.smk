# Tables, figures and the report: seconds each, from the records alone.  A rule for each, so that an edit of one drawing
# redraws that one alone; without Snakemake, `neuroute render sit` draws all of a paper in one process.
def artifact_inputs(artifact):
    a = PLAN.artifacts[artifact]
    return (
        [PLAN.evaluation_file(e) for e in a.evaluations]
        + [PLAN.run_dir(r) / file for r in a.runs for file in ("log.jsonl", "run.json")]
        + [PLAN.manifest(b) for b in a.label_jobs]
    )


def artifact_spec(artifact):
    """What an artifact shows besides its inputs: its paper's part of the scale, and the runs that it reads."""
    a = PLAN.artifacts[artifact]
    runs = sorted({*a.runs, *(PLAN.evaluations[e].run for e in a.evaluations)})
    return "\n".join([a.canonical(), PLAN.scale.of(a.paper).canonical(), *(PLAN.runs[r].canonical() for r in runs)])


for artifact, a in PLAN.artifacts.items():
    endings = ("csv", "md", "tex", "html") if a.kind == "table" else ("pdf", "svg", "png", "csv")
    stem = PLAN.artifact_stem(artifact)

    rule:
        name:
            f"{a.paper}_{a.name}"
        localrule: True
        input:
            artifact_inputs(artifact),
        output:
            report(
                f"{stem}.{'html' if a.kind == 'table' else 'svg'}",
                caption="../report/artifact.rst",
                category=a.paper,
                labels={"artifact": a.name, "title": a.title},
            ),
            [f"{stem}.{e}" for e in (*endings, "json") if e != ("html" if a.kind == "table" else "svg")],
        params:
            spec=artifact_spec(artifact),
            code=PLAN.render_code(artifact),
            id=artifact,
        log:
            f"{PLAN.work}/logs/render/{artifact}.log",
        message:
            "render {params.id}"
        shell:
            "{PYTHON} -m neuroute.cli render {params.id} > {log} 2>&1"


rule report:
    localrule: True
    input:
        [f"{PLAN.artifact_stem(a)}.json" for a in PLAN.artifacts],
    output:
        PLAN.report,
    params:
        code=PLAN.report_code(),
        scale=PLAN.scale.canonical(),
    log:
        f"{PLAN.work}/logs/report.log",
    message:
        "report"
    shell:
        "{PYTHON} -m neuroute.cli report > {log} 2>&1"
