"""Batches of networks that are decoded in a way of their own, which validations take, too."""

from typing import Any

import numpy as np

from neuroute.decoding.decode import decode
from neuroute.specs.objects import Decoding
from neuroute.training.batches import Batches


class OwnSolutions(Batches):
    """A training scheme of such a network."""

    def solve(self, instances: Any, net: Any = None) -> np.ndarray:
        """Solutions (count, ...) by which the run is validated; those of another network, if it is given."""
        scheme, net = self.scheme, net or self.scheme.net
        how, limits = Decoding(method=net.own_method), (scheme.memory_gb, scheme.training.precision)
        return decode(net.problem, net, instances, how, *limits).numpy()
