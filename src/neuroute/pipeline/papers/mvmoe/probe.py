"""The evaluation stage's look at MVMoE at work: which experts nodes go to, by variant, and routes that are driven.

Solutions are greedy from every start, without images, and all instances of a variant are one batch: a hierarchical gate
decides for all of it.  What the gates draw is seeded.  All of it is the live network's.
"""

from copy import copy
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.datasets.streams import vrp_dataset
from neuroute.decoding.environment import choose_best, precision_of
from neuroute.decoding.memory import autocast
from neuroute.decoding.vrp import VrpBatch
from neuroute.evaluation.loaded import Arrays, LoadedModel, Rows, parameter_rows, to_arrays, wrong_network
from neuroute.evaluation.snapshot import describe_modules, tap_inputs
from neuroute.networks.blocks.mixture import Hierarchical, Mixture
from neuroute.networks.blocks.routing import ExpertChoice, Gate, InputChoice, Routing
from neuroute.networks.mvmoe import ExpertLayer, MvMoe
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.problems.vrp import Vrp, lengths, number_of_starts
from neuroute.specs.objects import Decoding

SEED = 0  # of what gates draw, anew for each variant


def measure(loaded: LoadedModel, evaluation: mvmoe.RoutingEvaluation) -> tuple[Rows, Arrays]:
    """Return records (parameters) and arrays.

    With v variants, m experts, k of them for each token, N = 1 + V nodes and L mixtures in the encoder: modules,
    what `describe_modules` returns; top () k, clipping (), mixtures (L,) names; variants, counts (v,), customers
    () and steps (); what `statistics` and `solved` return, the former stacked over variants; shown (), the variant of
    the last data set, and of its first instance what `one_routing` and `one_decision` return.

    Raises NeurouteError if the network is no MVMoE with input choice of single nodes in encoder and decoder.
    """
    net = _drawable(evaluation, loaded)
    datasets = evaluation.datasets
    of_variants: list[Arrays] = []
    arrays: Arrays = {
        "modules": describe_modules(net, "layers"),
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
            of_variants.append(of_variant)
            arrays |= {f"{key}_{dataset.variant}": value for key, value in solved(instances[:1], solutions).items()}
        one = instances[:1]  # of the last data set
        arrays |= {"shown": np.array(datasets[-1].variant), **one_routing(net, one, loaded.place)}
        arrays |= one_decision(net, one, loaded.place)
    arrays |= {key: np.stack([each[key] for each in of_variants]) for key in of_variants[0]}
    # A record for each data set, so that what is drawn says what it was measured on.
    decoding = Decoding(starts="all")
    return parameter_rows(loaded, evaluation.name, *datasets, instances=None, decoding=decoding), arrays


def _drawable(evaluation: mvmoe.RoutingEvaluation, loaded: LoadedModel) -> MvMoe:
    net = loaded.net
    if isinstance(net, MvMoe) and _mixtures(net) and isinstance(net.combine, Mixture | Hierarchical):
        gates = [module for module in net.modules() if isinstance(module, Gate)]
        plain = all(gate.method == "input-choice" and gate.level == "node" for gate in gates)
        if plain and not isinstance(net.embed.depot, Mixture):
            return net
    purpose = "routing is shown of MVMoE with input choice of nodes in encoder and decoder"
    raise wrong_network(evaluation.id, purpose, loaded)


def _mixtures(net: MvMoe) -> list[str]:
    return [f"enc{number}" for number, layer in enumerate(net.layers) if isinstance(layer, ExpertLayer)]


def _decoders(net: MvMoe) -> Mixture:
    """The decoder's mixture."""
    mixture = net.combine.sparse if isinstance(net.combine, Hierarchical) else net.combine
    assert isinstance(mixture, Mixture)
    return mixture


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
    rollout = batch.rollout(batch.start_nodes(number_of_starts(instances)), precision_of(prepared))
    decisions, chances = 0, []
    with tap_inputs([net.combine], _first_input) as inputs:
        while not rollout.done():
            rollout.step(choose_best(net.decide(prepared, rollout.context, rollout.current, rollout.action_mask)))
            if isinstance(net.combine, Hierarchical) and decisions < steps:
                assert isinstance(net.combine, Hierarchical)
                p = routing.first if net.hierarchy == "episode" else net.combine.probabilities(inputs[-1], Routing())
                chances.append(0.5 if p is None else float(p[0, 0]))
            inputs.clear()
            decisions += 1
    runs = [bool(sparse) for sparse in routing.sparse] or [True] * decisions
    reports = iter(routing.reports)
    load = [next(reports).load[0].double().cpu().numpy() if run else None for run in runs]
    nothing = np.full(_decoders(net).gate.experts, np.nan)
    of_steps = [nothing if each is None else each for each in load[:steps]]
    arrays = {
        "encoder_load": np.stack([report.load[0].double().cpu().numpy() for report in encoder]),
        "decoder_load": np.sum([np.zeros_like(nothing), *(each for each in load if each is not None)], axis=0),
        "step_load": np.stack([*of_steps, *[nothing] * (steps - len(of_steps))]),
        "decisions": np.array(decisions),
    }
    if isinstance(net.combine, Hierarchical):
        padding = max(0, steps - decisions)
        arrays |= {
            "sparse_decisions": np.array(sum(runs)),
            "sparse": np.array([*runs[:steps], *[-1] * padding], dtype=np.int8),
            "sparse_chance": np.array([*chances, *[np.nan] * padding], dtype=np.float32),
        }
    return arrays, rollout.solutions()[0].cpu().numpy()


def solved(instance: Vrp, solutions: np.ndarray) -> Arrays:
    """An instance, and the shortest of its solutions (tours, 2, V).

    coords (N, 2), demand (N,), capacity (), of what the variant has windows (N, 2), service (N,) and limit (); order
    and flags (V,) as in `problems.vrp`, and length ().
    """
    every = instance[np.zeros(len(solutions), dtype=np.int64)]
    solution_lengths = lengths(every, solutions)
    order, flags = solutions[solution_lengths.argmin()]
    fields = {"limit": instance.limit, "windows": instance.windows, "service": instance.service}
    return {
        "coords": instance.coords[0],
        "demand": instance.demand[0],
        "capacity": instance.capacity[0],
        "order": order,
        "flags": flags,
        "length": solution_lengths.min(),
        **{key: value[0] for key, value in fields.items() if value is not None},
    }


def one_routing(net: MvMoe, instance: Vrp, place: torch.device) -> Arrays:
    """The last mixture of the encoder on the nodes of one instance, which are alone with it (Figure 3).

    layer () its name; scores (N, m), the gate's; input_experts and input_weights (N, k), what nodes choose; with the
    same scores expert_nodes and expert_weights (K, m), what experts would choose.
    """
    name = _mixtures(net)[-1]
    layer = net.layers[int(name.removeprefix("enc"))]
    assert isinstance(layer, ExpertLayer)
    gate, batch = layer.mixture.gate, VrpBatch.of(instance, place)
    with tap_inputs([gate], _first_input) as inputs:
        net.encode(batch.coords, batch.share, batch.windows, Routing(_seeded(place)))
    others = copy(gate)
    others.method = "expert-choice"
    by_input, by_expert = gate(inputs[0], Routing()), others(inputs[0], Routing())
    assert isinstance(by_input, InputChoice)
    assert isinstance(by_expert, ExpertChoice)
    scores = F.linear(inputs[0], gate.weight)[0]
    weights = {"input_weights": by_input.weights[0], "expert_weights": by_expert.weights[0]}
    return {
        "layer": np.array(name),
        "input_experts": by_input.experts[0].cpu().numpy(),
        "expert_nodes": by_expert.units[0].cpu().numpy(),
        **to_arrays({"scores": scores, **weights}),
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
    rollout = batch.rollout(batch.start_nodes(number_of_starts(instance)), precision_of(prepared))
    prefix = [0, int(rollout.current[0, 0])]
    while sum(node > 0 for node in prefix) < max(1, instance.customers // 3):
        rollout.step(choose_best(net.decide(prepared, rollout.context, rollout.current, rollout.action_mask)))
        prefix.append(int(rollout.current[0, 0]))
    with tap_inputs([net.combine], _first_input) as inputs:
        logits = net.decide(prepared, rollout.context, rollout.current, rollout.action_mask)[0, 0].float()
    gate, tours = _decoders(net).gate, inputs[0]  # (1, P, width)
    choice = gate(tours, Routing())
    assert isinstance(choice, InputChoice)
    is_open = logits.isfinite()
    computed = {
        "known": rollout.context[0, 0],
        "logits": logits.where(is_open, torch.nan),
        "probabilities": torch.softmax(logits, 0).where(is_open, torch.nan),
        "decoder_scores": F.linear(tours, gate.weight)[0],
        "decoder_weights": choice.weights[0],
    }
    if isinstance(net.combine, Hierarchical) and net.combine.gate is not None:
        scores = net.combine.gate(tours.mean(dim=1))[0]
        computed |= {"gate_scores": scores, "gate": scores.float().softmax(0)}
    return {"prefix": np.array(prefix), "decoder_experts": choice.experts[0].cpu().numpy(), **to_arrays(computed)}


def _first_input(_: nn.Module, inputs: tuple[Any, ...]) -> Tensor:
    entered: Tensor = inputs[0]
    return entered


def _seeded(place: torch.device) -> torch.Generator:
    return torch.Generator(place).manual_seed(SEED)
