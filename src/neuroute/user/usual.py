"""How a network's solutions are built where nothing is said."""

from neuroute.networks.base import RoutingNetwork
from neuroute.plan.decodings import Decoding, revise


def usual_decoding(net: RoutingNetwork, asked: Decoding | None = None) -> Decoding:
    """As is asked for; if nothing is, or no more than a greedy solution, in the network's own way where it has one.

    GLOP revises random insertion in its blocks, GLOP-G parts customers into routes.
    """
    if asked is None or asked == Decoding():
        if own := getattr(net, "own_method", None):
            return Decoding(method=own)
        if getattr(net, "blocks", None):
            return revise()
    if asked is not None:
        return asked
    many = net.multi_start and not net.single_start
    return Decoding(starts="all", augment=True) if many else Decoding()
