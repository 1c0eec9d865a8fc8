"""Formulas of every network against the networks themselves: their parameters, and what is counted while they run."""

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from neuroute.accounting import counts, counts_many_starts, measured
from neuroute.accounting.cost import counts as counts_of
from neuroute.core.errors import NeurouteError
from neuroute.networks.weights import build, parameters
from neuroute.plan.digest import locate
from neuroute.plan.objects import Network

SHAPE: dict[str, Any] = {"depth": 3, "width": 24, "feed_forward": 40}
HEADS = SHAPE | {"heads": 3}
OURS = {"depth": 3, "width": 24, "heads": 3}
CROSS = HEADS | {"attention": "cross", "representatives": 4}
WIDE_HEADS = {"depth": 1, "width": 12, "heads": 3, "feed_forward": 20, "representatives": 15}
EVERYWHERE = {"positions": ["raw", "enc", "dec"]}

PATHS: list[tuple[str, dict[str, Any]]] = [
    ("decoder_only:DecoderOnly", OURS),
    ("decoder_only:DecoderOnly", OURS | {"gate": False, "rezero": False}),
    ("lehd:Lehd", HEADS),
    ("dgl:Dgl", HEADS | {"nearest": 5}),
    ("dgl:Dgl", HEADS),
    ("bq:Bq", HEADS),
    ("lehd:LehdCvrp", HEADS),
    ("bq:BqCvrp", HEADS),
    ("bq:BqCvrp", CROSS),
    ("bq:BqCvrp", CROSS | {"nearest": 5}),
    *((f"{name}", HEADS | more) for name in ("sit:Sit", "sit:SitCvrp") for more in (CROSS, {"attention": "self"})),
    *((f"{name}", WIDE_HEADS) for name in ("sit:Sit", "sit:SitCvrp")),
    *(
        ("pens:Pens", HEADS | {"positions": positions, "output_projection": projection})
        for positions in ("alibi", "rope", "both", "coordinates")
        for projection in (False, True)
    ),
]
STARTS = [
    ("pomo:Pomo", HEADS),
    ("pomo:PomoCvrp", HEADS),
    *((name, HEADS | {"neighbours": k}) for name in ("elg:Elg", "elg:ElgCvrp") for k in (5, 30)),
    ("elg:Elg", HEADS | {"local": False}),
    ("pointerformer:Pointerformer", HEADS),
    *(
        (name, SHAPE | {"adaptation": adaptation, "compatibility": compatibility})
        for name in ("icam:Icam", "icam:IcamCvrp")
        for adaptation in (True, False)
        for compatibility in (True, False)
    ),
    *(
        (name, HEADS | {"action_depth": 1, "views": [5, 7], "actions": 4})
        for name in ("invit:Invit", "invit:InvitCvrp")
    ),
]
MIXTURES: list[dict[str, Any]] = [
    {"experts": 0},
    {"experts": 0, "inputs": "VRPL"},
    {"experts": 5, "top": 3},
    {"positions": ["enc1", "raw"], "inputs": "OVRPBTW"},
    {"method": "random"} | EVERYWHERE,
    {"method": "expert-choice"} | EVERYWHERE,
    {"method": "soft"} | EVERYWHERE,
    {"method": "soft", "level": "instance"},
    {"method": "expert-choice", "level": "instance"},
    {"level": "instance"},
    {"level": "problem"},
    {"decoder_method": "soft"},
    {"hierarchy": "step"},
    {"hierarchy": "random"},
    {"norm": "rezero"},
    {"norm": "none"},
    {"norm": "batch"},
]


def network(name: str, arguments: dict[str, Any] | None = None) -> Network:
    return Network(kind=locate(f"neuroute.networks.{name}"), arguments=arguments or {})


def ids(value: Any) -> str:
    return ",".join(map(str, value.values())) if isinstance(value, dict) else str(value)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *PATHS,
        *STARTS,
        *((name, {}) for name in ("lehd:Lehd", "bq:Bq", "bq:BqCvrp", "lehd:LehdCvrp", "pens:Pens")),
        *(("mvmoe:MvMoe", HEADS | case) for case in MIXTURES),
        ("glop:Glop", HEADS | {"blocks": [9, 5]}),
        ("glop:Glop", HEADS | {"blocks": [9, 5], "shared": True}),
        ("glop_partition:GlopPartition", {"depth": 3, "width": 24}),
        ("lehd:LehdCvrpLight", HEADS),
        ("lehd:LehdCvrpLight", HEADS | {"experts": 3, "top": 1}),
        *((name, HEADS | {"decoders": 2}) for name in ("mdam:Mdam", "mdam:MdamCvrp")),
    ],
    ids=ids,
)
def test_parameters_are_those_of_the_network(name: str, arguments: dict[str, Any]) -> None:
    with torch.device("meta"):
        assert counts_of(network(name, arguments)).parameters == parameters(build(network(name, arguments)))


@pytest.mark.parametrize(("name", "arguments"), PATHS, ids=ids)
@pytest.mark.parametrize("tokens", [4, 21, 140])
def test_paths_take_what_is_counted_while_they_run(name: str, arguments: dict[str, Any], tokens: int) -> None:
    """Of these SITs some fold; those with many representatives do not."""
    count, net = counts_of(network(name, arguments)), build(network(name, arguments)).eval()
    encoder, decision = measured._one_path(net, tokens)
    width, expected = arguments["width"], count.decision(tokens)
    if name == "decoder_only:DecoderOnly":  # the published formula runs the head on all tokens, not on the candidates
        expected -= 2 * 2 * width
    if name == "pens:Pens":  # no keys of origin and destination; torch does not count what is added to scores
        expected -= 2 * (2 * width**2 + 2 * width)
        biased = arguments["positions"] in ("alibi", "both")
        expected -= biased * arguments["depth"] * 2 * arguments["heads"] * tokens**2
        expected += (arguments["positions"] == "coordinates") * 2 * 2 * width * tokens
    assert (encoder, decision) == (count.encoder(tokens), expected)


@pytest.mark.parametrize(("name", "arguments"), STARTS, ids=ids)
def test_decisions_of_many_starts_take_what_is_counted(name: str, arguments: dict[str, Any]) -> None:
    count, net = counts_of(network(name, arguments)), build(network(name, arguments)).eval()
    assert measured._many_starts(net, 10) == (count.encoder(10), count.decision(10))


# Attention's softmax is another function than that of gates, which is not counted.
MIXED = {function: count for function, count in measured.COUNTED.items() if function != torch.ops.aten._softmax}


@pytest.mark.parametrize("case", MIXTURES, ids=str)
def test_mixtures_take_what_is_counted_while_they_run(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from neuroute.networks.blocks.experts.routing import Routing

    monkeypatch.setattr(measured, "COUNTED", MIXED)
    torch.manual_seed(0)
    net: Any = build(network("mvmoe:MvMoe", HEADS | case)).eval()
    count, n, tours = counts_many_starts.MvMoe(**HEADS, **case), 9, 4
    features = torch.rand(1, n, 2), torch.rand(1, n), torch.rand(1, n, 2)
    state = torch.rand(1, tours, 4), torch.tensor([[1, 2, 3, 4]]), torch.zeros(1, tours, n)
    prepared, flops = measured._flops(lambda: net.prepare(net.encode(*features)))
    assert flops == count.encoder(n)
    for seed in range(4):  # both branches of a hierarchical gate
        routing = Routing(torch.Generator().manual_seed(seed), balance=True)
        prepared = net.prepare(prepared.nodes, routing)
        _, flops = measured._flops(lambda: net.decide(prepared, *state))  # noqa: B023 (called here)
        assert flops == count.step(n, tours, sparse=all(bool(each) for each in routing.sparse))


@pytest.mark.parametrize("sparse", [True, False])
def test_light_layers_take_what_is_counted_while_they_run(sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from neuroute.networks.blocks.experts.hierarchical_gate import Hierarchical
    from neuroute.networks.blocks.experts.routing import Routing

    monkeypatch.setattr(measured, "COUNTED", MIXED)
    net: Any = build(network("lehd:LehdCvrpLight", HEADS)).eval()
    for gate in (module.gate for module in net.modules() if isinstance(module, Hierarchical)):
        with torch.no_grad():
            gate.weight.zero_()
    for seed in range(99):
        routing = Routing(torch.Generator().manual_seed(seed), balance=True)
        _, flops = measured._flops(lambda: net.decide(torch.rand(1, 8, 24), torch.rand(1), 1.0, routing))  # noqa: B023
        if all(bool(each) == sparse for each in routing.sparse):
            break
    assert flops == counts.LehdCvrpLight(**HEADS).decision(8, sparse=sparse)


def test_what_is_not_routed_is_not_computed() -> None:
    """Twice as many experts cost what their gates do."""
    four, eight = counts_many_starts.MvMoe(experts=4), counts_many_starts.MvMoe(experts=8)
    assert eight.encoder(51) - four.encoder(51) == 6 * 51 * 2 * 128 * 4
    assert eight.step(51) - four.step(51) == 2 * 128 * 4


def test_sits_decision_is_linear_in_its_tokens_and_its_twins_is_not() -> None:
    for cross, twin in ((counts.Sit(), counts.Sit(attention="self")), (counts.BqCvrp(attention="cross"), counts.Bq())):
        steps = [cross.decision(k + 1) - cross.decision(k) for k in (2_000, 10_000, 100_000)]
        assert len(set(steps)) == 1
        assert twin.decision(20_000) > 3.5 * twin.decision(10_000)


def test_icam_is_lighter_than_pomo_layer_for_layer() -> None:
    """No output projection (icam, Section 3.2: lower complexity), and no head-wise scores."""
    icam, pomo = counts_many_starts.Icam(depth=6), counts_many_starts.Pomo()
    for nodes in (100, 1000):
        assert icam.encoder(nodes) < pomo.encoder(nodes)
        assert icam.decision(nodes + 1) < pomo.decision(nodes + 1)


# -- networks without formulas ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("lehd:Lehd", HEADS),
        ("bq:BqCvrp", HEADS),
        ("pomo:PomoCvrp", HEADS),
        ("icam:Icam", SHAPE),
        ("mvmoe:MvMoe", HEADS | {"experts": 0}),
    ],
)
def test_a_measured_network_is_counted_as_by_its_formulas(name: str, arguments: dict[str, Any]) -> None:
    formulas, found = counts_of(network(name, arguments)), measured.measure(network(name, arguments))
    for size in (5, 101, 1001):
        assert (found.decision(size), found.encoder(size)) == (formulas.decision(size), formulas.encoder(size))
    assert found.parameters == formulas.parameters


def test_a_network_that_reads_values_is_measured_on_a_cpu() -> None:
    found = measured.measure(network("mvmoe:MvMoe", HEADS))
    assert found.decision(50) > 0


def test_arguments_that_a_network_does_not_take() -> None:
    with pytest.raises(NeurouteError, match="cannot be counted"):
        counts_of(network("bq:Bq", {"layers": 3}))
    with pytest.raises(NeurouteError, match="does not exist"):
        counts_of(network("other:Other"))


def test_torchs_counter_knows_the_functions_that_are_counted() -> None:
    x = torch.rand(3, 5)
    with FlopCounterMode(display=False, custom_mapping=measured.COUNTED) as counter:
        for function in (torch.relu, torch.tanh, lambda x: x.softmax(-1), torch.nn.functional.silu):
            function(x)
    assert counter.get_total_flops() == 4 * 15
