"""ICAM for the CVRP (icam, Section 3)."""

from neuroute.networks.contexts import CvrpEmbedding, LoadContext
from neuroute.networks.icam import Icam


class IcamCvrp(Icam):
    """Scores the depot and the customers that may come next; loads are shares of the capacity.

    D (3 W^2 + 2 W F + 5 W + F + 1) + 3 W^2 + 8 W + 2 parameters: 2,226,702 as published.  As there, the size is the
    number of customers, distances are those of the depot too, and the query knows the current stop and what is left.
    (The paper writes of first and last node for both problems.)

    What goes where of a published checkpoint is said in `Icam`, but for these: the linears of the depot, (W, 2), and of
    the customers, (W, 3) with the demand last, are `embed.depot` and `embed.customers`; the projection of the query,
    (W, W + 1) with what is left last, is `context.project`.
    """

    problem = "cvrp"
    depots = 1
    embedding = CvrpEmbedding
    context_of = LoadContext
