"""Searches for the 16 vehicle routing problems: none."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.multi_start import check_starts
from neuroute.decoding.search import Search
from neuroute.decoding.vrp import VRP, VrpBatch
from neuroute.networks.base import RoutingNetwork
from neuroute.plan.objects import Decoding


class VrpSearch(Search[VrpBatch]):
    environment = VRP

    def check(self, net: RoutingNetwork, decoding: Decoding, *, improves: bool = False) -> None:
        if improves:
            raise self._refusal(net)
        if not net.multi_start or net.problem != "vrp":
            raise NeurouteError(
                f"{type(net).__name__} is not for the 16 vehicle routing problems; networks as MvMoe are"
            )
        check_starts(net, decoding)
        if decoding.method != "greedy" or decoding.milestones:
            raise self._refusal(net)

    def reconstruct(self, net: RoutingNetwork, *args: Any, **settings: Any) -> Iterator[Tensor]:
        raise self._refusal(net)

    def search_beams(self, net: RoutingNetwork, *args: Any, **settings: Any) -> Tensor:
        raise self._refusal(net)

    def _refusal(self, net: RoutingNetwork) -> NeurouteError:
        return NeurouteError(
            f"{type(net).__name__}: beam search and re-construction are for the TSP and the CVRP; decode instances of "
            "the 16 vehicle routing problems greedily, from all starts and with symmetric images if you like"
        )


SEARCH = VrpSearch()
