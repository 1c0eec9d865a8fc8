"""What notes say of printed numbers alone follows from the files of these."""

from importlib.resources import files

from neuroute.pipeline.papers.scaling.paper import COMPARED, DEEPEST, LEHDS
from neuroute.pipeline.rendering.cells import select
from neuroute.pipeline.rendering.study import _read_published


def of(paper: str, table: str, **where: object) -> float:
    return float(select(_read_published(paper, table), **where).value.mean())


def test_notes_say_what_is_printed() -> None:
    groups, methods = ("<500", ">500 (<5000)", "<5000"), ("POMO-MTL", "MVMoE/4E", "MVMoE/4E-L")
    means = [[of("scaling", "table6", n=n, **shape._asdict()) for n in groups] for shape in COMPARED]
    weights = [f"{100 * (large - every) / (large - small):.0f}" for small, large, every in means]
    without = of("scaling", "table8", depth=6, width=256, log_n="no", n=1000, metric="gap_pct")
    with_it = of("scaling", "table13", depth=6, width=512, n=1000, metric="gap_pct")
    wide, deep = (of("scaling", "table20", metric="params_m", **shape._asdict()) for shape in LEHDS)
    (layers, w), (depth, width, hidden) = DEEPEST, (9, 192, 512)
    gates, whole = layers * (w**2 + w) / 1e6, (layers * (13 * w**2 + 7 * w + 2) + 2 * w**2 + 6 * w + 1) / 1e6
    count = depth * (3 * width**2 + 2 * width * hidden + 2 * width) + 2 * width**2 + 3 * width
    before, after = (of("pens", "table1", method="PENS-A", scaled=s, n=10_000, metric="gap_pct") for s in ("no", "yes"))
    scaled = select(_read_published("pens", "table2"), method="PENS-AR", scaled="yes").n.astype(str)
    places = [f"TSPLIB {n}" if "-" in n else f"TSP{n}" for n in dict.fromkeys(scaled)]
    of_multi = [f"{m} {of('mvmoe', 'table1', n=100, metric='gap_pct', method=m):.3f} %" for m in methods]
    quoted = {name: of("scaling", "quoted", quantity=name) for name in ("r2_global", "mape_global", "r2_depth")}
    for note, says in (
        ("scaling/figure2", "R² {r2_global:g} and error {mape_global:g} % for (a)".format_map(quoted)),
        ("scaling/figure2", f"mean R² {quoted['r2_depth']:g}, error"),
        ("scaling/figure1", f"says {of('scaling', 'quoted', quantity='models_beating_a_larger_one'):.0f} of 12"),
        ("scaling/table6", f"imply {', '.join(weights)} %"),
        ("scaling/table6", f"would be {', '.join(f'{0.6 * small + 0.4 * large:.3f}' for small, large, _ in means)} %"),
        ("scaling/table7", f"has {whole - gates:.2f}M parameters instead of {whole:.2f}M, {100 * gates / whole:.1f} %"),
        ("scaling/table8", f"{without:.3f} % and {with_it:.3f} %, differ by {100 * (1 - with_it / without):.1f} %"),
        ("scaling/table20", f"differ by {100 * (1 - deep / wide):.1f} %"),
        ("pens/table1", f"to {after:.2f} % at TSP10000; the tables print {before:.2f} % before"),
        ("pens/table1", f"a factor of {before / after:.2f}, where"),
        ("pens/table2", f"rescaled at {', '.join(places)} and nowhere else"),
        ("pens/table4", f"{(count + depth * width**2) / 1e6:.2f}M if attention's output is projected and {count:,} if"),
        ("mvmoe/table4", f"Table 1 has {', '.join(of_multi)}"),
    ):
        paper, name = note.split("/")
        text = (files(f"neuroute.pipeline.papers.{paper}") / "published" / f"{name}.md").read_text(encoding="utf-8")
        assert says in text, note
