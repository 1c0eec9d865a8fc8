"""The evaluation stage's look at MVMoE at work: which experts nodes go to, by variant, and routes that are driven.

Solutions are greedy from every start, without images, and all instances of a variant are one batch: a hierarchical gate
decides for all of it.  What the gates draw is seeded.  All of it is the live network's.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.core.errors import NeurouteError
from neuroute.datasets.vrp_stream import vrp_dataset
from neuroute.decoding.batches import autocast
from neuroute.decoding.multi_start import greedy
from neuroute.decoding.multi_start_vrp import RoutesUnderConstraints, number_of_starts
from neuroute.decoding.vrp_batch import VrpBatch, start_customers
from neuroute.evaluation.live_modules import modules
from neuroute.evaluation.loaded import LoadedModel
from neuroute.evaluation.records import Arrays, Rows, describe_test
from neuroute.networks.blocks.experts import Mixture
from neuroute.networks.blocks.gates import Choice, Gate, Taken
from neuroute.networks.blocks.hierarchical_gate import Hierarchical
from neuroute.networks.blocks.routing import Routing
from neuroute.networks.mvmoe import ExpertLayer, MvMoe
from neuroute.networks.weights import parameters
from neuroute.papers.mvmoe.evaluations import RoutingEvaluation
from neuroute.plan.objects import Decoding, Run
from neuroute.problems.vrp import Vrp, lengths, valid

SEED = 0  # of what gates draw, anew for each variant


def measure(loaded: LoadedModel, evaluation: RoutingEvaluation) -> tuple[Rows, Arrays]:
    """Return records (parameters) and arrays.

    With v variants, m experts, k of them for each token, N = 1 + V nodes and L mixtures in the encoder: modules, JSON
    of what `live_modules.modules` returns; top () k, clipping (), mixtures (L,) names; variants, counts (v,), customers
    () and steps (); what `statistics` and `solved` return, the former stacked over variants; shown (), the variant of
    the last data set, and of its first instance what `one_routing` and `one_decision` return.

    Raises NeurouteError if the network is no MVMoE with input choice of single nodes in encoder and decoder, or a data
    set is none of its problems or of another size.
    """
    _check(evaluation)
    net = _drawable(evaluation, loaded.run, loaded.net)
    datasets = evaluation.datasets
    found: list[Arrays] = []
    arrays: Arrays = {
        "modules": np.array(json.dumps(modules(net, "layers"))),
        "top": np.array(_decoders(net).gate.top),
        "clipping": np.array(net.clipping),
        "mixtures": np.array(_mixtures(net), dtype=np.str_),
        "variants": np.array([d.variant for d in datasets], dtype=np.str_),
        "counts": np.array([d.count for d in datasets]),
        "customers": np.array(datasets[0].n),
        "steps": np.array(evaluation.steps),
    }
    with torch.inference_mode(), autocast(loaded.place, loaded.run.training.precision):
        for dataset in datasets:
            instances = vrp_dataset(dataset)
            of_variant, solutions = statistics(net, instances, evaluation.steps, loaded.place)
            found.append(of_variant)
            arrays |= {f"{key}_{dataset.variant}": value for key, value in solved(instances[:1], solutions).items()}
        one = instances[:1]  # of the last data set
        arrays |= {"shown": np.array(datasets[-1].variant), **one_routing(net, one, loaded.place)}
        arrays |= one_decision(net, one, loaded.place)
    arrays |= {key: np.stack([each[key] for each in found]) for key in found[0]}
    return _rows(loaded, evaluation), arrays


def _check(evaluation: RoutingEvaluation) -> None:
    names = [d.variant for d in evaluation.datasets]
    if not names or None in names or len(set(names)) < len(names):
        raise NeurouteError(f"{evaluation.id}: data sets of {names}; give one of each of the VRPs that are shown")
    if len({d.n for d in evaluation.datasets}) > 1 or min(d.count for d in evaluation.datasets) < 1:
        raise NeurouteError(f"{evaluation.id}: data sets are to have one size and at least one instance each")


def _drawable(evaluation: RoutingEvaluation, run: Run, net: Any) -> MvMoe:
    if isinstance(net, MvMoe) and _mixtures(net) and isinstance(net.combine, Mixture | Hierarchical):
        gates = [module for module in net.modules() if isinstance(module, Gate)]
        plain = all(gate.method == "input-choice" and gate.level == "node" for gate in gates)
        if plain and not isinstance(net.embed.depot, Mixture):
            return net
    raise NeurouteError(
        f"{evaluation.id}: routing is shown of MVMoE with input choice of nodes in encoder and decoder, not of "
        f"{type(net).__name__} {json.dumps(run.network.arguments)}; choose such a run"
    )


def _mixtures(net: MvMoe) -> list[str]:
    return [f"enc{number}" for number, layer in enumerate(net.layers) if isinstance(layer, ExpertLayer)]


def _decoders(net: MvMoe) -> Mixture:
    """The decoder's mixture."""
    mixture = net.combine.sparse if isinstance(net.combine, Hierarchical) else net.combine
    assert isinstance(mixture, Mixture)
    return mixture


def _rows(loaded: LoadedModel, evaluation: RoutingEvaluation) -> Rows:
    """One for each data set, so that what is drawn says what it was measured on."""
    rows = Rows()
    for d in evaluation.datasets:
        values = {"parameters": parameters(loaded.net)}
        rows += loaded.rows(evaluation.group, describe_test(d), Decoding(starts="all"), values, 0.0)
    return rows


# -- where nodes go -------------------------------------------------------------------------------------------------


def statistics(net: MvMoe, instances: Vrp, steps: int, place: torch.device) -> tuple[Arrays, np.ndarray]:
    """Of a variant, and the solutions (tours, 2, V) of its first instance.

    encoder_load (L, m), decoder_load (m,): how many nodes and tours each expert got in all, each counting k times;
    step_load (steps, m), of each of the first decisions, nan where no expert ran or nothing was decided; decisions ().
    Of a light decoder besides sparse_decisions (), those with experts, sparse (steps,), 1 of these, 0 of others and -1
    where nothing was decided, and sparse_chance (steps,), what the gate gave the experts, nan there.
    """
    batch, routing = VrpBatch.of(instances, place), Routing(_seeded(place), balance=True)
    prepared = net.prepare(net.encode(batch.coords, batch.share, batch.windows, routing), routing)
    encoder, routing.reports = routing.reports, []
    starts = start_customers(batch.demand, number_of_starts(instances))
    routes = RoutesUnderConstraints(starts, batch, prepared.nodes.dtype)
    decisions, chances = 0, []
    with _inputs_of(net.combine) as seen:
        while not routes.over():
            routes.go(greedy(net.decide(prepared, routes.known, routes.current, routes.closed)))
            if isinstance(net.combine, Hierarchical) and decisions < steps:
                chances.append(_chance(net, seen[-1], routing))
            seen.clear()
            decisions += 1
    runs = [bool(sparse) for sparse in routing.sparse] or [True] * decisions
    reports = iter(routing.reports)
    load = [next(reports).load[0].double().cpu().numpy() if run else None for run in runs]
    nothing = np.full(_decoders(net).gate.experts, np.nan)
    of_steps = [nothing if each is None else each for each in load[:steps]]
    found = {
        "encoder_load": np.stack([report.load[0].double().cpu().numpy() for report in encoder]),
        "decoder_load": np.sum([np.zeros_like(nothing), *(each for each in load if each is not None)], axis=0),
        "step_load": np.stack([*of_steps, *[nothing] * (steps - len(of_steps))]),
        "decisions": np.array(decisions),
    }
    if isinstance(net.combine, Hierarchical):
        padding = max(0, steps - decisions)
        found |= {
            "sparse_decisions": np.array(sum(runs)),
            "sparse": np.array([*runs[:steps], *[-1] * padding], dtype=np.int8),
            "sparse_chance": np.array([*chances, *[np.nan] * padding], dtype=np.float32),
        }
    return found, routes.solutions()[0].cpu().numpy()


def _chance(net: MvMoe, seen: Tensor, routing: Routing) -> float:
    """What a light decoder's gate gave the experts in a decision."""
    assert isinstance(net.combine, Hierarchical)
    p = routing.first if net.hierarchy == "episode" else net.combine.probabilities(seen, Routing())
    return 0.5 if p is None else float(p[0, 0])


def solved(instance: Vrp, solutions: np.ndarray) -> Arrays:
    """An instance, and the shortest of its solutions (tours, 2, V).

    coords (N, 2), demand (N,), capacity (), of what the variant has windows (N, 2), service (N,) and limit (); order
    and flags (V,) as in `problems.vrp`, and length ().
    """
    every = instance[np.zeros(len(solutions), dtype=np.int64)]
    if not valid(every, solutions).all():
        raise AssertionError("decoding returned no solution that may be driven")  # a bug, never the user's
    found = lengths(every, solutions)
    order, flags = solutions[found.argmin()]
    given = {"limit": instance.limit, "windows": instance.windows, "service": instance.service}
    return {
        "coords": instance.coords[0],
        "demand": instance.demand[0],
        "capacity": instance.capacity[0],
        "order": order,
        "flags": flags,
        "length": found.min(),
        **{key: value[0] for key, value in given.items() if value is not None},
    }


# -- one instance in detail -----------------------------------------------------------------------------------------


def one_routing(net: MvMoe, instance: Vrp, place: torch.device) -> Arrays:
    """The last mixture of the encoder on the nodes of one instance, which are alone with it (Figure 3).

    layer () its name; scores (N, m), the gate's; input_experts and input_weights (N, k), what nodes choose; with the
    same scores expert_nodes and expert_weights (K, m), what experts would choose.
    """
    name = _mixtures(net)[-1]
    layer = net.layers[int(name.removeprefix("enc"))]
    assert isinstance(layer, ExpertLayer)
    gate, batch = layer.mixture.gate, VrpBatch.of(instance, place)
    with _inputs_of(gate) as seen:
        net.encode(batch.coords, batch.share, batch.windows, Routing(_seeded(place)))
    others = copy(gate)
    others.method = "expert-choice"
    chosen, taken = gate(seen[0], Routing()), others(seen[0], Routing())
    assert isinstance(chosen, Choice)
    assert isinstance(taken, Taken)
    return {
        "layer": np.array(name),
        "scores": _float(F.linear(seen[0], gate.weight)[0]),
        "input_experts": chosen.experts[0].cpu().numpy(),
        "input_weights": _float(chosen.weights[0]),
        "expert_nodes": taken.units[0].cpu().numpy(),
        "expert_weights": _float(taken.weights[0]),
    }


def one_decision(net: MvMoe, instance: Vrp, place: torch.device) -> Arrays:
    """A decision of all P tours of one instance, when the first one has served a third of the customers (Figures 2, 4).

    prefix, its nodes so far, from the depot on; known (4,), logits and probabilities (N,), nan where it cannot go;
    decoder_scores (P, m), decoder_experts and decoder_weights (P, k) of the decoder's gate, whether or not a light
    decoder has drawn the experts then.  Of such a one, unless it draws at random, gate_scores and gate (2,): what its
    own gate makes of the tours, and the probabilities of experts and dense layer.
    """
    batch, routing = VrpBatch.of(instance, place), Routing(_seeded(place))
    prepared = net.prepare(net.encode(batch.coords, batch.share, batch.windows, routing), routing)
    routes = RoutesUnderConstraints(
        start_customers(batch.demand, number_of_starts(instance)), batch, prepared.nodes.dtype
    )
    prefix = [0, int(routes.current[0, 0])]
    while sum(node > 0 for node in prefix) < max(1, instance.customers // 3):
        routes.go(greedy(net.decide(prepared, routes.known, routes.current, routes.closed)))
        prefix.append(int(routes.current[0, 0]))
    with _inputs_of(net.combine) as seen:
        logits = net.decide(prepared, routes.known, routes.current, routes.closed)[0, 0].float()
    gate, tours = _decoders(net).gate, seen[0]  # (1, P, width)
    chosen = gate(tours, Routing())
    assert isinstance(chosen, Choice)
    left = logits.isfinite()
    found = {
        "prefix": np.array(prefix),
        "known": _float(routes.known[0, 0]),
        "logits": _float(logits.where(left, torch.nan)),
        "probabilities": _float(torch.softmax(logits, 0).where(left, torch.nan)),
        "decoder_scores": _float(F.linear(tours, gate.weight)[0]),
        "decoder_experts": chosen.experts[0].cpu().numpy(),
        "decoder_weights": _float(chosen.weights[0]),
    }
    if isinstance(net.combine, Hierarchical) and net.combine.gate is not None:
        own = net.combine.gate(tours.mean(dim=1))[0]
        found |= {"gate_scores": _float(own), "gate": _float(own.float().softmax(0))}
    return found


@contextmanager
def _inputs_of(module: nn.Module) -> Iterator[list[Tensor]]:
    """While it is open, each call of a module adds what enters it first."""
    found: list[Tensor] = []
    hook = module.register_forward_pre_hook(lambda _, given: found.append(given[0]))
    try:
        yield found
    finally:
        hook.remove()


def _seeded(place: torch.device) -> torch.Generator:
    return torch.Generator(place).manual_seed(SEED)


def _float(x: Tensor) -> np.ndarray:
    array: np.ndarray = x.float().cpu().numpy()
    return array
