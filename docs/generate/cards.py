"""A page of the trained networks that come with the package, from their cards."""

from neuroute.api.zoo import HEADS, Card, Gap, models

HEAD = """# Models

Trained networks come with neuroute: `neuroute solve` and `neuroute.solve` pick the one for an instance, or take it by
name (`--model NAME`). `neuroute models` lists them; gaps are of the largest tests within
the sizes trained on. Scale `zoo` trains them again: `snakemake all --config scale=zoo`.

A card says what a network was measured to do, on which machine, by which commit. A network is checked when loaded:
its first decision on a fixed instance must be the one on its card.

"""


def page() -> str:
    """All cards, or that there are none."""
    cards = models()
    if not cards:
        return HEAD + "This copy of neuroute holds no trained networks.\n"
    rows = [f"| [{c.name}](#{c.name}) | {' | '.join(c.row[1:])} |" for c in cards]
    overview = "\n".join([f"| {' | '.join(HEADS)} |", "|---|---|---|---:|---|", *rows])
    return HEAD + overview + "\n\n" + "\n".join(_section(card) for card in cards)


def _section(card: Card) -> str:
    facts = {
        "solves": _what(card),
        "recommended for": f"{card.nodes[0]} to {card.nodes[1]} {'nodes' if card.problem == 'tsp' else 'customers'}",
        "network": f"{card.network}, {card.parameters:,} parameters",
        "trained on": card.trained_on,
        "training": f"run `{card.run}`, seed {card.seed}, {card.seconds / 60:,.0f} min on {card.device}",
        "commit": f"{card.commit}, {card.date}",
        "SHA-256": f"`{card.sha256[:16]}...`",
    }
    lines = [f"## {card.name}\n", "| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in facts.items())]
    if card.gaps:
        lines += ["", "| set | decoding | instances | gap (%) | to | seconds, all |", "|---|---|---:|---:|---|---:|"]
        lines += [_row(gap) for gap in card.gaps]
    return "\n".join(lines) + "\n"


def _what(card: Card) -> str:
    return ", ".join(card.variants) if card.variants else card.problem.upper()


def _row(gap: Gap) -> str:
    interval = "" if gap.low is None or gap.high is None else f" [{gap.low:.2f}, {gap.high:.2f}]"
    seconds = "" if gap.seconds is None else f"{gap.seconds:.3g}"
    return f"| {gap.set} | {gap.decoding} | {gap.instances} | {gap.gap:.2f}{interval} | {gap.reference} | {seconds} |"
