"""Every published layout: sizes as printed, files as training scripts write them, the same probabilities."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from refusals import one_line
from torch import Tensor

import dgl_by_the_book as dgl
import pointerformer_by_the_book as pointerformer
import published_code as there
import published_formulas as formulas
import published_glop as glop
from neuroute.datasets.problem_spec import SPEC
from neuroute.decoding.decode import decode
from neuroute.networks.blocks.routing import Routing
from neuroute.networks.import_weights import import_weights
from neuroute.networks.layouts import layouts, recognise
from neuroute.networks.weights import load_checkpoint
from neuroute.specs.objects import Dataset, Decoding
from published_code import Size, State

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = Size()
EXACT = {"rtol": 1e-10, "atol": 1e-10}
N = 9


class Case(NamedTuple):
    """A network as its authors publish it."""

    layout: str
    problem: str
    shapes: Callable[[Size], Iterator[tuple[str, tuple[int, ...]]]]
    step: Callable[..., Tensor]  # probabilities of a decision
    arguments: dict[str, Any] = {}  # that no tensor of this one tells
    branch: str = ""
    ignored: State = {}  # what a file holds besides, with which nothing computes


def _both(name: str, shapes: Any, step: Any, **more: Any) -> dict[str, Case]:
    return {
        f"{name} {p}": Case(f"{name} for the {p.upper()}", p, lambda size, p=p: shapes(p, size), step, **more)
        for p in ("tsp", "cvrp")
    }


def _mvmoe(experts: int, arguments: dict[str, Any] | None = None, **shape: Any) -> Case:
    return Case(MVMOE, "vrp", lambda size: there.mvmoe(experts, size, **shape), formulas.pomo_step, arguments or {})


MVMOE, LIGHT = "MVMoE, POMO-MTL and POMO for one VRP", "MVMoE with a light decoder"
PATH = {
    **_both("LEHD", there.lehd, formulas.lehd_step),
    **_both("SIT", there.sit, formulas.sit_step),
    **_both("BQ", there.bq, formulas.bq_step),
    "DGL": Case("DGL for the TSP", "tsp", dgl.shapes, dgl.step, {"nearest": dgl.NEAREST}),
}
STARTS = {
    **_both("POMO", there.pomo, formulas.pomo_step),
    "ELG tsp": Case("ELG for the TSP", "tsp", lambda size: there.elg("tsp", size), formulas.elg_step),
    **_both("ICAM", there.icam, formulas.icam_step),
    "Pointerformer": Case("Pointerformer for the TSP", "tsp", pointerformer.shapes, pointerformer.step),
    **{name: _mvmoe(n) for name, n in {"POMO-MTL": 0, "MVMoE/4E": 4, "MVMoE/8E": 8}.items()},
    **{f"MVMoE/4E-L {each}": _mvmoe(4, light=True)._replace(layout=LIGHT, branch=each) for each in ("dense", "moe")},
    **{
        f"POMO {variant}": _mvmoe(0, {"inputs": variant} if told else {}, features=features, context=context)
        for variant, features, context, told in (
            ("CVRP", 3, 1, False),
            ("OVRP", 3, 2, True),
            ("VRPL", 3, 2, True),
            ("OVRPL", 3, 3, False),
            ("VRPTW", 5, 2, False),
            ("OVRPTW", 5, 3, True),
            ("VRPLTW", 5, 3, True),
        )
    },
}
# Whose decisions are compared with published ones in `extras/systems/tests`.
OF_MDAM = Size(3, 16, 4, 24)
REMEMBERED = {f"{norm}.running_mean": torch.ones(16) for i in range(3) for norm in there.mdam_layer(i, 3)[2:]}
POSITIONS = {"embedder.pe.pe": torch.ones(3)}
OTHERS = {
    "ELG cvrp": Case("ELG for the CVRP", "cvrp", lambda size: there.elg("cvrp", size), formulas.pomo_step),
    **_both("INViT", there.invit, formulas.pomo_step),
    **_both("MDAM", lambda problem, _: there.mdam(problem, OF_MDAM), formulas.pomo_step, ignored=REMEMBERED),
    "GLOP": Case("GLOP's reviser", "tsp", lambda _: glop.attention_model(), formulas.pomo_step, ignored=POSITIONS),
    "AM": Case("the attention model for the TSP", "tsp", lambda _: glop.attention_model(), formulas.pomo_step),
    "GLOP-G": Case("GLOP-G's partition", "cvrp", lambda _: glop.partition(), formulas.pomo_step),
}
CASES = PATH | STARTS | OTHERS


def state_of(case: Case) -> State:
    return there.weights(dict(case.shapes(SMALL)))


def content_of(case: Case, state: State) -> dict[str, Any]:
    state = state | case.ignored
    if case.layout.startswith(("MDAM", "GLOP", "the attention")):
        return {"model_state_dict" if "GLOP-G" in case.layout else "model": state, "optimizer": {}}
    if case.layout.startswith("INViT"):
        return {"epoch": 7, "time": 1.5, "tot_time": 9.0, "model_baseline": state, "model_train": state}
    if case.layout.startswith("Pointerformer"):
        return {"epoch": 499, "global_step": 3, "state_dict": state}
    return there.trained_bq(state) if case.layout.startswith("BQ") else there.trained(state)


def imported(folder: Path, case: Case, content: Any, **arguments: Any) -> Any:
    torch.save(content, folder / "theirs.pt")
    known = {} if case.layout.startswith(("ICAM", "MDAM", "GLOP", "the attention")) else {"heads": there.HEADS}
    import_weights(folder / "theirs.pt", folder / "ours.safetensors", None, known | case.arguments | arguments)
    return load_checkpoint(folder / "ours.safetensors")[0]


def refused(folder: Path, case: Case, content: Any, match: str) -> None:
    """One line, and nothing written."""
    with one_line(match):
        imported(folder, case, content)
    assert not (folder / "ours.safetensors").exists()


# -- the same probabilities -------------------------------------------------------------------------------------------


def walk(net: Any, rows: Tensor, visited: list[int]) -> Tensor:
    """Tell the rows of all nodes of the stops so far, of which the last is the current one."""
    for stop in visited:
        places = [stop, *(i for i in range(N) if i != stop), visited[0]]
        seen = rows[:, places]
        net.arrive(seen)
        rows[:, places[:-1]] = seen[:, :-1]
    return rows


@pytest.mark.parametrize("name", PATH)
def test_path_networks_give_the_published_probabilities(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    state = state_of(case)
    net = imported(tmp_path, case, content_of(case, state)).double()
    p = {key: tensor.double() for key, tensor in state.items()}
    torch.manual_seed(0)
    coords, demand = torch.rand(4, N, 2).double(), torch.rand(4, N).double() * 0.4
    demand[:, 0], left = 0, torch.rand(4).double()
    of_cvrp = case.problem == "cvrp"
    for visited in ([0], [0, 4, 7], [0, 3, 1, 2, 8, 5, 6]):
        open_ = [i for i in range(N) if i not in visited]
        rows = net.encode(coords, demand) if of_cvrp else walk(net, net.encode(coords), visited)
        rows = rows[:, [visited[-1], *open_, visited[0]]]
        logits = net.decide(rows, left) if of_cvrp else net.decide(rows)
        expected = case.step(p, coords, *((demand, visited, left) if of_cvrp else (None, visited, None)))
        torch.testing.assert_close(torch.softmax(logits.flatten(1), -1), expected, **EXACT)


class Drawn(Routing):
    """What a light decoder draws is given."""

    def __init__(self, sparse: bool) -> None:
        super().__init__()
        self._sparse = sparse

    def resolve(self, what: str, calls: int, make: Any) -> Tensor:
        assert what == "sparse"
        return torch.full((calls,), self._sparse)


@pytest.mark.parametrize("name", STARTS)
def test_networks_of_many_starts_give_the_published_probabilities(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    state = state_of(case)
    net = imported(tmp_path, case, content_of(case, state)).double()
    p = {key: tensor.double() for key, tensor in state.items()}
    torch.manual_seed(0)
    coords, demand = torch.rand(3, N, 2).double(), torch.rand(3, N).double() * 0.4
    windows, current = torch.rand(3, N, 2).double(), torch.randint(0, N, (3, 4))
    mask = torch.zeros(3, 4, N).double().masked_fill(torch.rand(3, 4, N) < 0.4, -torch.inf)
    mask[..., 0] = 0
    if case.problem == "tsp":
        known = read = torch.randint(0, N, (3, 4))
        given = theirs = (coords,)
    elif case.problem == "cvrp":
        known = torch.rand(3, 4).double()
        given, theirs, read = (coords, demand), (coords, demand[..., None]), known[..., None]
    else:
        known = torch.rand(3, 4, 4).double()  # load, time, length, open
        read = known[..., net.context.columns]
        given, theirs = (coords, demand, windows), (coords, demand[..., None], windows)
        theirs = theirs if p["encoder.embedding_node.weight"].shape[1] == 5 else theirs[:2]
    more = (Drawn(case.branch == "moe"),) if case.branch else ()
    with torch.no_grad():
        logits = net.decide(net.prepare(net.encode(*given), *more), known, current, mask)
    expected = case.step(p, theirs, read, current, mask, *([case.branch] if case.branch else []))
    torch.testing.assert_close(torch.softmax(logits, -1), expected, **EXACT)


# -- and on ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in CASES if name != "GLOP-G"])  # whose walk is no construction
def test_imported_networks_decode(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    net = imported(tmp_path, case, content_of(case, state_of(case)))
    variant = case.arguments.get("inputs", "CVRP") if case.problem == "vrp" else None
    dataset = Dataset(problem=case.problem, n=8, count=3, variant=variant)  # type: ignore[arg-type]
    spec = SPEC.of(case.problem)  # type: ignore[arg-type]
    instances = spec.instances(dataset)
    how = Decoding(method=getattr(net, "own_method", "greedy"))
    found = decode(case.problem, net, instances, how).numpy()
    assert (spec.built or spec.valid)(instances, found).all()


def test_what_dgl_never_uses_is_left_behind(tmp_path: Path) -> None:
    """33,024 numbers as published; all else is the same network."""
    case = CASES["DGL"]
    state = there.weights(dict(dgl.shapes(SMALL, idle=True)))
    used = {name: state[name] for name in dict(dgl.shapes(SMALL))}
    assert len(state) - len(used) == 4
    whole, less = (imported(tmp_path, case, there.trained(each)) for each in (state, used))
    for name, tensor in less.state_dict().items():
        assert torch.equal(whole.state_dict()[name], tensor), name


def test_every_layout_has_a_case() -> None:
    assert {case.layout for case in CASES.values()} == {layout.name for layout in layouts()}
    for case in CASES.values():
        found = recognise(state_of(case) | case.ignored)
        assert found.name == case.layout


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "LEHD cvrp",
        "SIT tsp",
        "BQ tsp",
        "POMO cvrp",
        "ICAM tsp",
        "MVMoE/4E",
        "MVMoE/4E-L moe",
        "INViT cvrp",
        "MDAM tsp",
        "GLOP",
    ],
)
def test_wrong_files_name_what_differs(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    state = state_of(case)
    one = next(key for key in state if ".1." in key and "mean" not in key and "std" not in key)
    cut = {key: tensor for key, tensor in state.items() if key != one}
    refused(tmp_path, case, content_of(case, cut), f"missing: {one}")
    newer = state | {"decoder.new.weight": torch.zeros(2)}
    refused(tmp_path, case, content_of(case, newer), r"left over: decoder\.new\.weight")
    narrow = state | {one: state[one][:1].repeat(3, *([1] * (state[one].ndim - 1)))}
    refused(tmp_path, case, content_of(case, narrow), "do not fit each other|of another shape")
    broken = state | {one: state[one] * torch.nan}
    refused(tmp_path, case, content_of(case, broken), "not finite")
