"""A picture of layers of boxes with arrows down, as SVG."""

from collections.abc import Iterable, Sequence

WIDTH, HEIGHT, GAP, ROW = 176, 34, 30, 74  # of a box, between boxes, from layer to layer
SIDE = 130  # beside the boxes, for arrows past layers


def svg(layers: Sequence[Sequence[str]], arrows: Iterable[tuple[str, str]]) -> str:
    """The layers, the first one at the bottom; colours follow the page's text."""
    widest = max(len(layer) for layer in layers)
    total, height = widest * (WIDTH + GAP) + 2 * SIDE, len(layers) * ROW
    place: dict[str, tuple[float, float]] = {}
    for number, layer in enumerate(reversed(layers)):
        # Layers of one box stand to the left and right in turn, so that arrows past them are seen.
        shift = 0 if len(layer) > 1 else (-1) ** number * (WIDTH + GAP) / 2
        left = (total - len(layer) * WIDTH - (len(layer) - 1) * GAP) / 2 + shift
        for column, name in enumerate(layer):
            place[name] = (left + column * (WIDTH + GAP), number * ROW + 8)
    lines = [_arrow(place[here], place[there], total / 2) for here, there in sorted(arrows)]
    boxes = [_box(name, *at) for name, at in place.items()]
    return (
        f'<svg viewBox="0 0 {total} {height}" role="img" aria-label="folders, each imports what its arrows point to" '
        'style="max-width: 640px; width: 100%" font-size="14" fill="none" stroke="currentColor">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="currentColor" stroke="none"/></marker></defs>'
        + "".join(lines + boxes)
        + "</svg>"
    )


def _box(name: str, x: float, y: float) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" style="fill: var(--md-default-bg-color)"/>'
        f'<text x="{x + WIDTH / 2}" y="{y + 22}" text-anchor="middle" fill="currentColor" stroke="none">{name}</text>'
    )


def _arrow(here: tuple[float, float], there: tuple[float, float], middle: float) -> str:
    """Down to the next layer; to others around the boxes between."""
    (x1, y1), (x2, y2) = (here[0] + WIDTH / 2, here[1] + HEIGHT), (there[0] + WIDTH / 2, there[1])
    bend, out1, out2 = max((y2 - y1) / 2, 12), x1, x2
    if y2 - y1 > ROW:
        bend, out1 = bend / 2, middle + (1 if x2 >= middle else -1) * (middle - 30)
        out2 = out1
    path = f"M{x1} {y1} C{out1} {y1 + bend} {out2} {y2 - bend} {x2} {y2}"
    return f'<path d="{path}" opacity=".55" marker-end="url(#tip)"/>'
