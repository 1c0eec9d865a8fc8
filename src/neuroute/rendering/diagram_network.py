"""The encoder and the decoder of a network of many starts: a row each, joined by the encoded nodes."""

from neuroute.rendering.diagram import Box, Element, Frame, Panel, Row, Sheet, Sign, box, row
from neuroute.rendering.maps import Decision, draw_probabilities, draw_state

SIDE = 1.12  # of the maps at the left, in inches


def encoder_row(title: str, embed: Box, attention: Box, feed: Box, norm: str, label: str, nodes: str) -> Row:
    """From a map of the instance to encoded nodes, by way of layers of two residual blocks with norms behind them.

    The boxes are to be named "embed", "attention" and "feed".
    """
    first, second = (box(f"norm{i}", "norm", norm, fill="feed") for i in (1, 2))
    layer = row(attention, Sign("add1"), first, feed, Sign("add2"), second, tight=True)
    return row(Panel("instance", SIDE, SIDE, title), embed, Frame("layers", layer, label), box("H", "H", nodes))


def decoder_row(title: str, *boxes: Element) -> Row:
    """From the context at the right to a map of probabilities; boxes "softmax", "fits", ..., "keys", "context"."""
    return row(Panel("probabilities", SIDE, SIDE, title), *boxes)


def draw_network(sheet: Sheet, decision: Decision, *mixing: str) -> None:
    """Both maps, and all arrows; mixing: names of what stands between context and compatibility, from right to left."""
    draw_state(sheet.axes["instance"], decision)
    draw_probabilities(sheet.axes["probabilities"], decision)
    sheet.chain("instance", "embed", "attention", "add1", "norm1", "feed", "add2", "norm2", "H")
    sheet.skip("attention", "add1")
    sheet.skip("feed", "add2")
    sheet.chain("context", *mixing, "fits", "softmax", "probabilities")
    sheet.fork("H", {"context": "H", mixing[0]: "keys,\nvalues", "fits": "nodes"})
