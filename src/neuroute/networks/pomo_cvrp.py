"""POMO for the CVRP (Kwon et al., 2020)."""

from neuroute.networks.contexts import CvrpEmbedding, LoadContext
from neuroute.networks.pomo import Pomo


class PomoCvrp(Pomo):
    """Scores the depot and the customers that may come next; loads are shares of the capacity.

    D (4 W^2 + 2 W F + 6 W + F) + 4 W^2 + 9 W parameters: 1,254,016 as published.  Depot and customers share all layers.

    Names of the published tensors are those of `Pomo` but for these: encoder.embedding_depot and embedding_node are
    `embed.depot` and `embed.customers`; of the decoder, Wq_last, (W, W + 1) with what is left in its last column, is
    `context.project`.
    """

    problem = "cvrp"
    embedding = CvrpEmbedding
    context_of = LoadContext
