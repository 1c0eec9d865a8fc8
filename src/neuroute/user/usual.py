"""How a network's solutions are built where nothing is said."""

from neuroute.networks.base import RoutingNetwork
from neuroute.plan.decodings import Decoding, revise


def usual_decoding(net: RoutingNetwork, asked: Decoding | None = None) -> Decoding:
    """As is asked for; if nothing is, or no more than a greedy solution, in the network's own way where it has one.

    GLOP revises random insertion in its blocks, GLOP-G parts customers into routes.  Each of MDAM's decoders builds a
    solution, or has beams of its own.
    """
    own = getattr(net, "own_method", None)
    if own == "decoders" and asked is not None and asked.method == "beam":
        return asked.model_copy(update={"method": own})
    if asked is None or asked == Decoding():
        if own:
            return Decoding(method=own)
        if getattr(net, "blocks", None):
            return revise()
    if asked is not None:
        return asked
    many = net.multi_start and not net.single_start
    return Decoding(starts="all", augment=True) if many else Decoding()
