"""How a network's solutions are built where nothing is said."""

from neuroute.networks.base import RoutingNetwork
from neuroute.plan.decodings import Decoding, revise


def usual_decoding(net: RoutingNetwork, decoding: Decoding | None = None) -> Decoding:
    """As is asked for; if nothing is, or no more than a greedy solution, in the network's own way where it has one.

    GLOP revises random insertion in its blocks, GLOP-G parts customers into routes.  Each of MDAM's decoders builds a
    solution, or has beams of its own.
    """
    own_method = getattr(net, "own_method", None)
    if own_method == "decoders" and decoding is not None and decoding.method == "beam":
        return decoding.model_copy(update={"method": own_method})
    if decoding is None or decoding == Decoding():
        if own_method:
            return Decoding(method=own_method)
        if getattr(net, "blocks", None):
            return revise()
    if decoding is not None:
        return decoding
    many = net.multi_start and not net.single_start
    return Decoding(starts="all", augment=True) if many else Decoding()
