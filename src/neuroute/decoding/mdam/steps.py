"""One of MDAM's decoders at work: solutions whose nodes are computed anew as they grow (Xin et al., 2021)."""

import torch
from torch import Tensor

from neuroute.decoding.environment import Batch
from neuroute.decoding.rollout import Choose, Rollout, choose_best, empty_mask, pick_masks, pick_tours, precision_of
from neuroute.networks.mdam import Encoded, Mdam, Prepared


class FromAnywhere:
    """Tours whose first stop is a decision too; until then they are at -1."""

    def __init__(self, batch: Batch, tours: int, dtype: torch.dtype) -> None:
        self._batch, self._dtype, self._begun = batch, dtype, list[Rollout]()
        self.context = self.current = torch.full((len(batch), tours), -1, device=batch.coords.device)
        self.mask = empty_mask(self.current, batch.coords.shape[1], dtype)

    def is_complete(self) -> bool:
        return bool(self._begun) and self._begun[0].is_complete()

    def go(self, stops: Tensor) -> None:
        if self._begun:
            self._begun[0].go(stops)
        else:
            self._begun.append(self._batch.rollout(stops, self._dtype))
        self._show()

    def pick(self, parents: Tensor) -> None:
        if self._begun:
            self._begun[0].pick(parents)
            self._show()
        else:
            self.context = self.current = pick_tours(self.current, parents)
            self.mask = pick_masks(self.mask, parents)

    def solutions(self) -> Tensor:
        return self._begun[0].solutions()

    def _show(self) -> None:
        (rollout,) = self._begun
        self.context, self.current, self.mask = rollout.context, rollout.current, rollout.mask


class Steps:
    """The decisions of one decoder about the solutions of a rollout, one after the other.

    There is one solution of each instance, to begin with.
    """

    def __init__(self, net: Mdam, decoder: int, encoded: Encoded, batch: Batch) -> None:
        """encoded: what the network makes of the batch."""
        self._net, self._decoder, self._encoded = net, decoder, encoded
        self._prepared, self._of_solutions = net.prepare(decoder, encoded.nodes), False
        self._before: Tensor | None = None  # the mask of the decision before, where the next one asks for it
        self._number = 0
        dtype, none = precision_of(encoded), torch.zeros(len(batch), 1, dtype=torch.int64, device=batch.coords.device)
        self.rollout: Rollout = FromAnywhere(batch, 1, dtype) if net.problem == "tsp" else batch.rollout(none, dtype)

    def logits(self) -> Tensor:
        """Of the next stop of each solution: (batch, solutions, nodes)."""
        rollout, net = self.rollout, self._net
        if net.glimpses(self._number):
            assert self._before is not None
            nodes = net.glimpse(self._encoded, self._before)
            self._prepared, self._of_solutions = net.prepare(self._decoder, nodes), True
        logits = net.decide(self._decoder, self._prepared, rollout.context, rollout.current, rollout.mask)
        self._number += 1
        self._before = rollout.mask.clone() if net.glimpses(self._number) else None
        return logits

    def pick(self, parents: Tensor) -> None:
        """Go on with the solutions `parents` (batch, new) int64, and no others."""
        if self._before is not None:  # what is prepared is computed anew
            self._before = pick_tours(self._before, parents)
        elif self._of_solutions:
            batch = len(parents)
            fields = (pick_tours(each.unflatten(0, (batch, -1)), parents).flatten(0, 1) for each in self._prepared)
            self._prepared = Prepared(*fields)
        self.rollout.pick(parents)


def build(net: Mdam, decoder: int, encoded: Encoded, batch: Batch, choose: Choose = choose_best) -> Tensor:
    """One solution of each instance (batch, 1, ...) by one decoder, each decision made by `choose`."""
    steps = Steps(net, decoder, encoded, batch)
    while not steps.rollout.is_complete():
        steps.rollout.go(choose(steps.logits()))
    return steps.rollout.solutions()


def build_all(net: Mdam, encoded: Encoded, batch: Batch) -> Tensor:
    """The greedy solutions (batch, decoders, ...)."""
    return torch.cat([build(net, decoder, encoded, batch) for decoder in range(len(net.decoders))], dim=1)
