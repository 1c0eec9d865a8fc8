"""Routes from many starts, written down stop by stop: what the CVRP and the 16 vehicle routing problems share."""

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError


class RoutesUnderWay:
    """Solutions that are being built.  The last way back to the depot goes without saying.

    A decision may go to the depot unless the vehicle stands there.  A solution that is complete before others of the
    batch goes to the depot and stays: nothing else is open, so that decision is certain.
    """

    def __init__(self, starts: Tensor, nodes: int) -> None:
        """starts (batch, tours): for the shapes alone; all stand at the depot.  nodes: with the depot."""
        self.current, self._served = torch.zeros_like(starts), torch.zeros_like(starts)
        self._order, self._via = (starts.new_zeros(*starts.shape, nodes, dtype=torch.int32) for _ in range(2))
        self._customers, self._moves = nodes - 1, 0

    def over(self) -> bool:
        """Whether all are complete.  Raises NeurouteError where they never will be: scores that are no numbers."""
        # Asking waits for a GPU, so not before the first moment when it may be so.
        complete = self._moves >= self._customers and bool((self._served == self._customers).all())
        if not complete and self._moves > 2 * self._customers + 1:  # every customer, the depot before each
            raise NeurouteError(
                "solutions are not complete when they must be: the network's scores are no numbers; its training has "
                "diverged, train it with a lower learning rate"
            )
        return complete

    def solutions(self) -> Tensor:
        """(batch, tours, 2, V): order and flags, as in `problems.cvrp` and `problems.vrp`."""
        return torch.stack([self._order[..., :-1], self._via[..., :-1]], dim=2).long()

    def _move(self, stops: Tensor) -> None:
        """Write down stops (batch, tours) and stand there."""
        # A way to the depot is written where the next customer will be, or, after the last one, behind all.
        self._order.scatter_(2, self._served[..., None], stops[..., None].int())
        self._via.scatter_(2, self._served[..., None], (self.current == 0)[..., None].int())
        self._served = self._served + (stops > 0)
        self.current = stops
        self._moves += 1

    def _depot_closed(self) -> Tensor:
        """Where (batch, tours) the depot may not come next: there, as long as customers are left."""
        return (self.current == 0) & (self._served < self._customers)
