"""MDAM's search: beams against plain loops, merging against all pairs, the optimum, batches, what is refused."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC
from neuroute.decoding.decode import decode, instances_per_batch
from neuroute.decoding.environment import ENVIRONMENT, Rollout, choose_best
from neuroute.decoding.multi_start import WithServed
from neuroute.networks.pomo import Pomo
from neuroute.specs.objects import Dataset, Decoding
from neuroute_systems.glop.decoding import PartitionRollout
from neuroute_systems.mdam.decoding import FromAnywhere, Partial, build, merge, search_beams
from neuroute_systems.mdam.network import Mdam, MdamCvrp

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")
PROBLEMS = ("tsp", "cvrp")
OWN = Decoding(method=Mdam.own_method)


def make(problem: str, **more: Any) -> Any:
    torch.manual_seed(0)
    shape: dict[str, Any] = {"depth": 2, "width": 16, "heads": 2, "feed_forward": 24, "decoders": 2}
    net = (Mdam if problem == "tsp" else MdamCvrp)(**shape | more).double().eval()
    for decoder in net.decoders:  # so that stops are not equally probable
        decoder.project_glimpse.weight.data.mul_(3)
    return net


def instances(problem: str, n: int, count: int, variant: str | None = None) -> Any:
    return SPEC.of(problem).instances(Dataset(problem=problem, n=n, count=count, variant=variant))  # type: ignore[arg-type]


def batch_of(problem: str, n: int, count: int, variant: str | None = None) -> Any:
    return ENVIRONMENT.of(problem).batch(instances(problem, n, count, variant), CPU).to(torch.float64)


# -- beams ------------------------------------------------------------------------------------------------------------


def shortest_by_loops(net: Any, decoder: int, batch: Any, beam: int, expand: int) -> float:
    """Of one instance; a dict for each partial solution, whose nodes are computed by themselves."""
    encoded, points = net.encode(*batch.features), batch.coords[0].double()
    n, cvrp = len(points), net.problem == "cvrp"
    demand = batch.demand[0].tolist() if cvrp else [0] * n
    capacity = int(batch.capacity[0]) if cvrp else 0
    own = net.prepare(decoder, encoded.nodes)
    beams: list[dict[str, Any]] = [{"stops": [0] if cvrp else [], "log_p": 0.0, "closed": [], "own": own}]

    def closed(stops: list[int]) -> list[int]:
        if cvrp and stops == [0]:  # the depot is open at first
            return []
        visited = {stop for stop in stops if stop or not cvrp}
        if not cvrp:
            return sorted(visited)
        if len(visited) == n - 1:
            return sorted(visited)
        used = load(stops)
        return sorted({*visited, *(i for i in range(1, n) if used + demand[i] > capacity), *([] if stops[-1] else [0])})

    def masked(nodes: list[int]) -> Tensor:
        mask = torch.zeros(1, 1, n, dtype=torch.float64)
        mask[..., nodes] = -torch.inf
        return mask

    def load(stops: list[int]) -> int:
        start = max(i for i, stop in enumerate(stops) if stop == 0) if cvrp else 0
        return sum(demand[i] for i in stops[start:])

    def length(stops: list[int]) -> float:
        return sum(math.dist(points[a], points[b]) for a, b in itertools.pairwise(stops))

    def done(stops: list[int]) -> bool:
        return len({stop for stop in stops if stop or not cvrp}) == (
            n - 1
        )  # of a tour the last one goes without saying

    for step in itertools.count():
        if all(done(each["stops"]) for each in beams):
            break
        found = []
        for each in beams:
            stops = each["stops"]
            if net.glimpses(step):
                each["own"] = net.prepare(decoder, net.glimpse(encoded, masked(each["closed"])))
            here = torch.tensor([[stops[-1] if stops else -1]])
            known = torch.tensor([[stops[0] if stops else -1]])
            if cvrp:
                known = torch.tensor([[1 - load(stops) / capacity]], dtype=torch.float64)
            log_p = net.decide(decoder, each["own"], known, here, masked(closed(stops)))[0, 0].log_softmax(-1)
            for stop in log_p.argsort(descending=True)[:expand].tolist():
                if log_p[stop] > -torch.inf:
                    more = [*stops, stop]
                    told = {"stops": more, "log_p": each["log_p"] + float(log_p[stop]), "closed": closed(stops)}
                    found.append(told | {"own": each["own"], "length": length(more), "load": load(more)})
        for a, b in itertools.permutations(found, 2):
            alike = {x for x in a["stops"] if x or not cvrp} == {x for x in b["stops"] if x or not cvrp}
            alike = alike and a["stops"][-1] == b["stops"][-1] and a["stops"][0] == b["stops"][0]
            if alike and a["load"] <= b["load"] and (a["length"], found.index(a)) < (b["length"], found.index(b)):
                b["dropped"], a["more"] = True, max(a.get("more", -math.inf), b["log_p"])
        kept = [
            each | {"log_p": max(each["log_p"], each.get("more", -math.inf))} for each in found if "dropped" not in each
        ]
        kept = [{key: value for key, value in each.items() if key != "more"} for each in kept]
        beams = sorted(kept, key=lambda each: -each["log_p"])[:beam]
    ends = []
    for each in beams:
        rest = [] if cvrp else [i for i in range(n) if i not in each["stops"]]
        ends.append(length([*each["stops"], *rest, each["stops"][0]]))
    return min(ends)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(("beam", "every"), [(1, 2), (4, 2), (7, 3), (12, 2)])
def test_beams_find_what_plain_loops_find(problem: str, beam: int, every: int) -> None:
    net, batch = make(problem, glimpse_every=every), batch_of(problem, 7, 3)
    for i in range(3):
        one = batch[i : i + 1]
        found = search_beams(net, 1, net.encode(*one.features), one, beam)
        with torch.no_grad():
            assert float(one.lengths(found[:, None])) == pytest.approx(
                shortest_by_loops(net, 1, one, beam, 3), rel=1e-9
            )


def test_a_beam_of_one_is_greedy() -> None:
    """But for the CVRP's first decision."""
    net, batch = make("tsp"), batch_of("tsp", 9, 5)
    encoded = net.encode(*batch.features)
    with torch.no_grad():
        assert torch.equal(search_beams(net, 0, encoded, batch, 1, expand=1), build(net, 0, encoded, batch)[:, 0])


def test_merging_goes_through_all_pairs() -> None:
    torch.manual_seed(0)
    count = 60
    for _ in range(5):
        visited = torch.rand(1, 6, 8).round().bool()[:, torch.randint(6, (count,))]
        first, last, used = (torch.randint(2, (1, count)) for _ in range(3))
        length, log_p = torch.randint(3, (1, count)).double(), torch.randn(1, count).double()
        log_p[0, ::7] = -torch.inf
        found = merge(Partial(log_p, visited, first, last, used, length))[0].tolist()
        for i in range(count):
            same = [
                j
                for j in range(count)
                if j != i and torch.equal(visited[0, i], visited[0, j]) and bool(first[0, i] == first[0, j])
                and bool(last[0, i] == last[0, j]) and -math.inf not in (float(log_p[0, i]), float(log_p[0, j]))
            ]  # fmt: skip
            key = [(float(length[0, j]), j) for j in range(count)]
            over = [j for j in same if key[j] < key[i] and used[0, j] <= used[0, i]]
            under = [j for j in same if key[i] < key[j] and used[0, i] <= used[0, j]]
            wanted = -math.inf if over else max(float(log_p[0, j]) for j in (i, *under))
            assert found[i] == wanted


# -- decoding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("beam", [1, 6])
def test_copies_of_an_instance_are_solved_as_one(problem: str, beam: int) -> None:
    """What batch norms see of copies is what they see of the one, in as many at a time as may be."""
    net, given = make(problem), instances(problem, 9, 1)
    how = OWN.model_copy(update={"beam": beam})
    alone = decode(problem, net.float(), given, how)
    five = np.repeat(given, 5, axis=0) if problem == "tsp" else given[np.zeros(5, dtype=int)]
    for size in (None, 2):
        together = decode(problem, net, five, how.model_copy(update={"batch_size": size}))
        spec = SPEC.of(problem)
        np.testing.assert_allclose(spec.lengths(five, together.numpy()), spec.lengths(given, alone.numpy())[0])


@pytest.mark.parametrize("problem", PROBLEMS)
def test_solutions_are_the_best_of_all_decoders(problem: str) -> None:
    net, spec, given = make(problem).float(), SPEC.of(problem), instances(problem, 10, 6)
    batch = ENVIRONMENT.of(problem).batch(given, CPU)
    with torch.no_grad():
        encoded = net.encode(*batch.features)
        one, five = (torch.stack([search_beams(net, d, encoded, batch, k) for d in range(2)], dim=1) for k in (1, 5))
    for how, found in ((OWN, one), (OWN.model_copy(update={"beam": 5}), five)):
        lengths = spec.lengths(given, decode(problem, net, given, how).numpy())  # raises for what is no solution
        np.testing.assert_allclose(lengths, batch.lengths(found).amin(dim=1))


def test_how_many_are_solved_together() -> None:
    """256 where memory holds them, whatever a CPU's caches hold: statistics are of all of them."""
    net = make("tsp")
    assert instances_per_batch(net, 20, OWN, 4.0) == 256
    wide = OWN.model_copy(update={"beam": 50})
    assert instances_per_batch(net, 100, wide, 1.0) == 1e9 // (64 * 16 * 101 * 50)
    assert instances_per_batch(net, 100, wide.model_copy(update={"batch_size": 300}), 4.0) == 300
    with pytest.raises(NeurouteError, match="with beam 50 needs about"):
        instances_per_batch(net, 100, wide, 1e-4)


# -- solutions that go on ---------------------------------------------------------------------------------------------


def rollouts() -> dict[str, Rollout]:
    start = torch.tensor([[1, 2, 3], [4, 5, 1]])
    tsp, cvrp = batch_of("tsp", 7, 2), batch_of("cvrp", 7, 2)
    given = instances("vrp", 7, 2, "OVRPLTW")
    vrp = ENVIRONMENT.of("vrp").batch(given, CPU).to(torch.float64)
    return {
        "tsp": tsp.rollout(start, torch.float64),
        "cvrp": cvrp.rollout(start, torch.float64),
        "vrp": vrp.rollout(start, torch.float64),
        "anywhere": FromAnywhere(tsp, 3, torch.float64),
        "served": WithServed(cvrp.rollout(start, torch.float64), start),
        "partition": PartitionRollout(cvrp, 3, torch.float64),
    }


@pytest.mark.parametrize("kind", rollouts())
@pytest.mark.parametrize("before", [0, 3])
def test_picked_solutions_go_on_as_they_would(kind: str, before: int) -> None:
    """Also one that is picked twice: as the same one of a rollout in which nothing is picked."""
    parents = torch.tensor([[2, 0, 2, 1], [1, 1, 0, 2]])
    torch.manual_seed(0)
    scores = torch.rand(40, 2, 3, 8)

    def go(rollout: Rollout, scores: Tensor) -> None:
        n = rollout.action_mask.shape[2]
        rollout.step(choose_best(scores[..., :n].double() + rollout.action_mask))

    whole, picked = rollouts()[kind], rollouts()[kind]
    with torch.no_grad():
        for step in range(before):
            go(whole, scores[step])
            go(picked, scores[step])
        picked.select(parents)
        rows = torch.arange(2)[:, None]
        step = before
        while not (whole.done() and picked.done()):
            if not whole.done():
                go(whole, scores[step])
            if not picked.done():
                go(picked, scores[step][rows, parents])
            step += 1
    assert torch.equal(picked.solutions(), whole.solutions()[rows, parents])


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["greedy", "beam", "rrc"])
def test_other_ways_are_refused(method: str) -> None:
    with pytest.raises(NeurouteError, match="Mdam is decoded by method 'decoders' alone"):
        decode("tsp", make("tsp"), instances("tsp", 8, 1), Decoding.model_validate({"method": method}))


def test_other_networks_and_options_are_refused() -> None:
    given = instances("tsp", 8, 1)
    with pytest.raises(NeurouteError, match="for Mdam, not for"):
        decode("tsp", Pomo(1, 16, 2, 16), given, OWN)
    with pytest.raises(NeurouteError, match="leave `rescale` and `esf` out"):
        decode("tsp", make("tsp").float(), given, OWN.model_copy(update={"rescale": 2.0}))
    for more in ({"starts": 2}, {"augment": True}):
        with pytest.raises(ValueError, match="starts|augment"):
            Decoding.model_validate({"method": Mdam.own_method} | more)
