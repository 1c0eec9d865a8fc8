"""What each network takes, from the arguments that describe it and without building it.

Arguments, and what they are when they are left out, are those of the networks themselves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from neuroute.accounting import (
    flops,
    flops_baselines,
    flops_cvrp,
    flops_icam,
    flops_mvmoe,
    flops_pens,
    flops_pomo,
    flops_sit,
)


@dataclass(frozen=True)
class Counts:
    """What one network takes: an encoder runs once on the nodes, a decision on the tokens that are left."""

    parameters: int
    decision: Callable[[int], int]  # tokens -> FLOPs
    encoder: Callable[[int], int] = lambda nodes: 0  # nodes -> FLOPs


def decoder_only(
    *, depth: int, width: int, heads: int, gate: bool = True, rezero: bool = True, train_nodes: int = 100
) -> Counts:
    return Counts(
        flops.parameters(depth, width, gate=gate, rezero=rezero),
        lambda tokens: flops.decision_flops(depth, width, heads, tokens, gate=gate),
    )


def lehd(
    *, depth: int = 6, width: int = 128, heads: int = 8, feed_forward: int = 512, train_nodes: int = 100
) -> Counts:
    return Counts(
        flops_baselines.lehd_parameters(depth, width, feed_forward),
        lambda tokens: flops_baselines.lehd_decision_flops(depth, width, heads, feed_forward, tokens),
        lambda nodes: flops_baselines.lehd_encoder_flops(width, heads, feed_forward, nodes),
    )


def bq(*, depth: int = 9, width: int = 192, heads: int = 12, feed_forward: int = 512, train_nodes: int = 100) -> Counts:
    return Counts(
        flops_baselines.bq_parameters(depth, width, feed_forward),
        lambda tokens: flops_baselines.bq_decision_flops(depth, width, heads, feed_forward, tokens),
    )


def lehd_cvrp(
    *, depth: int = 6, width: int = 128, heads: int = 8, feed_forward: int = 512, train_nodes: int = 100
) -> Counts:
    return Counts(
        flops_cvrp.lehd_parameters(depth, width, feed_forward),
        lambda tokens: flops_cvrp.lehd_decision_flops(depth, width, heads, feed_forward, tokens),
        lambda nodes: flops_cvrp.lehd_encoder_flops(width, heads, feed_forward, nodes),
    )


def lehd_cvrp_light(
    *,
    depth: int = 6,
    width: int = 128,
    heads: int = 8,
    feed_forward: int = 512,
    experts: int = 4,
    top: int = 2,
    train_nodes: int = 100,
) -> Counts:
    """Experts run in all decisions."""
    shape = (depth, width, heads, feed_forward, experts, top)
    return Counts(
        flops_cvrp.light_lehd_parameters(depth, width, feed_forward, experts),
        lambda tokens: flops_cvrp.light_lehd_decision_flops(*shape, tokens),
        lambda nodes: flops_cvrp.lehd_encoder_flops(width, heads, feed_forward, nodes),
    )


def bq_cvrp(
    *,
    depth: int = 9,
    width: int = 192,
    heads: int = 12,
    feed_forward: int = 512,
    attention: flops_sit.Attention = "self",
    representatives: int = 15,
    train_nodes: int = 100,
) -> Counts:
    return Counts(
        flops_cvrp.bq_parameters(depth, width, feed_forward, representatives, attention=attention),
        lambda tokens: flops_cvrp.bq_decision_flops(
            depth, width, heads, feed_forward, representatives, tokens, attention=attention
        ),
    )


def _pomo(
    cvrp: bool,
    /,
    *,
    depth: int = 6,
    width: int = 128,
    heads: int = 8,
    feed_forward: int = 512,
    clipping: float = 10.0,
    train_nodes: int = 100,
) -> Counts:
    """Of one solution.  A decision on k tokens is that of k - 1 nodes: as many as there are when a tour begins.

    POMO's decisions do not shrink: `per_solution` as the paper counts is what they take, with a beam for the starts.
    Of the CVRP, ways back to the depot are decisions more, and not counted.
    """
    return Counts(
        flops_pomo.parameters(depth, width, feed_forward, cvrp=cvrp),
        lambda tokens: flops_pomo.decision_flops(width, heads, tokens - 1),
        lambda nodes: flops_pomo.encoder_flops(depth, width, heads, feed_forward, nodes, cvrp=cvrp),
    )


pomo, pomo_cvrp = partial(_pomo, False), partial(_pomo, True)


def _icam(
    cvrp: bool,
    /,
    *,
    depth: int = 12,
    width: int = 128,
    feed_forward: int = 512,
    clipping: float = 50.0,
    adaptation: bool = True,
    compatibility: bool = True,
    train_nodes: int = 100,
) -> Counts:
    """Of one solution, as `_pomo`."""
    return Counts(
        flops_icam.parameters(
            depth, width, feed_forward, cvrp=cvrp, adaptation=adaptation, compatibility=compatibility
        ),
        lambda tokens: flops_icam.decision_flops(width, tokens - 1),
        lambda nodes: flops_icam.encoder_flops(depth, width, feed_forward, nodes, cvrp=cvrp, adaptation=adaptation),
    )


icam, icam_cvrp = partial(_icam, False), partial(_icam, True)


def mvmoe(*, clipping: float = 10.0, train_nodes: int = 100, **shape: Any) -> Counts:
    """Of one solution of one of the 16 VRPs, as `_pomo`; a light decoder runs its experts in all decisions."""
    of = flops_mvmoe.Mvmoe(**shape)
    return Counts(of.parameters, lambda tokens: of.decision_flops(tokens - 1), of.encoder_flops)


def pens(
    *,
    depth: int = 9,
    width: int = 192,
    heads: int = 12,
    feed_forward: int = 512,
    positions: str = "alibi",
    initial: str = "gaussian",
    output_projection: bool = False,
    train_nodes: int = 100,
) -> Counts:
    shape = (depth, width, feed_forward)
    return Counts(
        flops_pens.parameters(*shape, output_projection=output_projection, coordinates=positions == "coordinates"),
        lambda tokens: flops_pens.decision_flops(
            *shape, heads, tokens, output_projection=output_projection, alibi=positions in ("alibi", "both")
        ),
    )


def _sit(
    cvrp: bool,
    /,
    *,
    depth: int = 6,
    width: int = 128,
    heads: int = 8,
    feed_forward: int = 512,
    representatives: int = 15,
    attention: flops_sit.Attention = "cross",
    train_nodes: int = 1000,
) -> Counts:
    return Counts(
        flops_sit.parameters(depth, width, feed_forward, representatives, attention=attention, cvrp=cvrp),
        lambda tokens: flops_sit.decision_flops(
            depth, width, heads, feed_forward, representatives, tokens, attention=attention, cvrp=cvrp
        ),
    )


sit = partial(_sit, False)


def sit_cvrp(*, detach_customers: bool = False, **shape: Any) -> Counts:
    return _sit(True, **shape)
