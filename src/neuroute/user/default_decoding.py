"""How a network builds solutions where nothing is said: one rule for the command line, Python and comparisons."""

from typing import TYPE_CHECKING

from neuroute.networks.base import RoutingNetwork
from neuroute.plan.decoding_names import name_of, parse_decoding
from neuroute.plan.decodings import Decoding, revise

if TYPE_CHECKING:
    from neuroute.user.model import Model

LONGEST = 50  # stops of a sub-path: longer ones cost more and are improved less often (docs/choices.md)


def default_decoding(net: RoutingNetwork) -> Decoding:
    """Return how a network builds a solution without search.

    `multistart` for a network of many starts (POMO, ICAM), else `greedy`.  A network with a way of its own is decoded
    in it: GLOP revises random insertion in its blocks, GLOP-G parts customers into routes, each of MDAM's decoders
    builds a solution.
    """
    if own_method := getattr(net, "own_method", None):
        return Decoding(method=own_method)
    if getattr(net, "blocks", None):
        return revise()
    return Decoding(starts="all") if net.multi_start and not net.single_start else Decoding()


def resolve_decoding(net: RoutingNetwork, decoding: Decoding | str | None) -> Decoding:
    """Return a decoding that may be given by name, None: the default; beams of MDAM are its decoders'.

    Raises NeurouteError for an unknown name.
    """
    if decoding is None:
        return default_decoding(net)
    if isinstance(decoding, str):
        decoding = parse_decoding(decoding)
    own_method = getattr(net, "own_method", None)
    if own_method == "decoders" and decoding.method == "beam":
        return decoding.model_copy(update={"method": own_method})
    return decoding


def search_step(model: "Model", n: int) -> Decoding:
    """Return how a search improves solutions of n stops: as a shipped network's card says, else in short pieces."""
    how = Decoding(method="prc", longest=LONGEST)
    if model.card is not None and model.card.decoding.method in ("rrc", "prc"):
        how = model.card.decoding
    return how if how.longest is None else how.model_copy(update={"longest": min(how.longest, n)})


def name_of_search(net: RoutingNetwork, seconds: float, has_start: bool) -> str:
    """Return what a search of so many seconds is called: greedy + search; without `greedy` from a given solution."""
    first = [] if has_start else [name_of(default_decoding(net))]
    return " + ".join([*first, *(["search"] if seconds > 0 or has_start else [])])
