"""A page of how the papers test, beside how scale `paper` does, from the plan."""

from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import Config
from neuroute.pipeline.rendering.protocol import LEGEND, markdown, protocol_lines

HEAD = f"""# Protocols, paper against here

How each paper tests, and how scale `paper` does. {LEGEND} Bold: a departure; [choices](../choices.md) has the
reasons.
A report has the same tables at its own scale.
"""


def page() -> str:
    """The tables of all papers that declare a protocol."""
    plan = build_plan(Config(scale="paper"))
    tables = {paper.title: protocol_lines(plan, key) for key, paper in plan.papers.items()}
    return HEAD + "".join(f"\n## {title}\n\n{markdown(lines)}" for title, lines in tables.items() if lines)
