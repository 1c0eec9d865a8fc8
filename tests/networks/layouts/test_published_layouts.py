"""Every published layout: sizes as printed, files as training scripts write them, the same probabilities, and back."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import dgl_by_the_book as dgl
import pointerformer_by_the_book as pointerformer
import published_code as there
import published_formulas as formulas
from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC
from neuroute.decoding.decode import decode
from neuroute.networks.blocks.experts.routing import Routing
from neuroute.networks.import_weights import export_weights, import_weights
from neuroute.networks.layouts.tables import LAYOUTS, recognise
from neuroute.networks.weights import build, load_checkpoint, save_checkpoint
from neuroute.plan.objects import Dataset, Decoding, Network
from published_code import Shapes, Size, State, parameters
from published_invit import invit

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


def _both(name: str, shapes: Any, step: Any) -> dict[str, Case]:
    return {
        f"{name} {p}": Case(f"{name} for the {p.upper()}", p, lambda size, p=p: shapes(p, size), step)
        for p in ("tsp", "cvrp")
    }


MVMOE, LIGHT = "MVMoE, POMO-MTL and POMO for one VRP", "MVMoE with a light decoder"
PATH = {
    **_both("LEHD", there.lehd, formulas.lehd_step),
    **_both("SIT", there.sit, formulas.sit_step),
    **_both("BQ", there.bq, formulas.bq_step),
    "DGL": Case("DGL for the TSP", "tsp", dgl.shapes, dgl.step, {"nearest": dgl.NEAREST}),
}
STARTS = {
    **_both("POMO", there.pomo, formulas.pomo_step),
    **_both("ELG", there.elg, formulas.elg_step),
    **_both("ICAM", there.icam, formulas.icam_step),
    "Pointerformer": Case("Pointerformer for the TSP", "tsp", pointerformer.shapes, pointerformer.step),
    "POMO-MTL": Case(MVMOE, "vrp", lambda size: there.mvmoe(0, size), formulas.pomo_step),
    "MVMoE/4E": Case(MVMOE, "vrp", lambda size: there.mvmoe(4, size), formulas.pomo_step),
    "MVMoE/8E": Case(MVMOE, "vrp", lambda size: there.mvmoe(8, size), formulas.pomo_step),
    **{
        f"MVMoE/4E-L {branch}": Case(
            LIGHT, "vrp", lambda size: there.mvmoe(4, size, light=True), formulas.pomo_step, branch=branch
        )
        for branch in ("dense", "moe")
    },
    **{
        f"POMO {variant}": Case(
            MVMOE,
            "vrp",
            lambda size, columns=columns: there.mvmoe(0, size, features=columns[0], context=columns[1]),
            formulas.pomo_step,
            {"inputs": variant} if told else {},
        )
        for variant, columns, told in (
            ("CVRP", (3, 1), False),
            ("OVRP", (3, 2), True),
            ("VRPL", (3, 2), True),
            ("OVRPL", (3, 3), False),
            ("VRPTW", (5, 2), False),
            ("OVRPTW", (5, 3), True),
            ("VRPLTW", (5, 3), True),
        )
    },
}
# Whose decisions are compared in `test_invit`.
VIEWS = {
    f"INViT {p}": Case(f"INViT for the {p.upper()}", p, lambda size, p=p: invit(p, size), formulas.pomo_step)
    for p in ("tsp", "cvrp")
}
CASES = PATH | STARTS | VIEWS


def state_of(case: Case) -> State:
    return there.weights(dict(case.shapes(SMALL)))


def content_of(case: Case, state: State) -> dict[str, Any]:
    if case.layout.startswith("INViT"):
        return {"epoch": 7, "time": 1.5, "tot_time": 9.0, "model_baseline": state, "model_train": state}
    if case.layout.startswith("Pointerformer"):
        return {"epoch": 499, "global_step": 3, "state_dict": state}
    return there.trained_bq(state) if case.layout.startswith("BQ") else there.trained(state)


def imported(folder: Path, case: Case, content: Any, **arguments: Any) -> Any:
    torch.save(content, folder / "theirs.pt")
    known = {} if "ICAM" in case.layout else {"heads": there.HEADS}
    import_weights(folder / "theirs.pt", folder / "ours.safetensors", None, known | case.arguments | arguments)
    return load_checkpoint(folder / "ours.safetensors")[0]


def refused(folder: Path, case: Case, content: Any, match: str) -> None:
    """One line, and nothing written."""
    with pytest.raises(NeurouteError, match=match) as error:
        imported(folder, case, content)
    assert "\n" not in str(error.value)
    assert not (folder / "ours.safetensors").exists()


# -- sizes ------------------------------------------------------------------------------------------------------------

PUBLISHED = Size(6, 128, 8, 512)
PRINTED: dict[str, tuple[Shapes, int]] = {
    "LEHD": (dict(there.lehd("tsp", PUBLISHED)), 1_431_681),
    "SIT": (dict(there.sit("tsp", PUBLISHED)), 2_633_217),
    "SIT CVRP": (dict(there.sit("cvrp", PUBLISHED)), 2_635_522),
    "DGL": (dict(dgl.shapes(Size(3, 128, 8, 512), idle=True)), 840_193),
    "BQ": (dict(there.bq("tsp", Size(9, 192, 12, 512))), 3_107_539),
    "BQ CVRP": (dict(there.bq("cvrp", Size(9, 192, 12, 512))), 3_108_116),
    "POMO": (dict(there.pomo("tsp", PUBLISHED)), 1_269_760),
    "POMO CVRP": (dict(there.pomo("cvrp", PUBLISHED)), 1_254_016),
    "Pointerformer": (dict(pointerformer.shapes(PUBLISHED)), 1_288_064),
    "ELG": (dict(there.elg("tsp", PUBLISHED)), 1_274_016),
    "ELG CVRP": (dict(there.elg("cvrp", PUBLISHED)), 1_258_304),
    "ICAM": (dict(there.icam("tsp", Size(12, 128, 8, 512))), 2_242_446),
    "ICAM CVRP": (dict(there.icam("cvrp", Size(12, 128, 8, 512))), 2_226_702),
    "POMO-MTL": (dict(there.mvmoe(0, PUBLISHED)), 1_254_656),
    "MVMoE/4E": (dict(there.mvmoe(4, PUBLISHED)), 3_682_176),
    "MVMoE/4E-L": (dict(there.mvmoe(4, PUBLISHED, light=True)), 3_698_944),
    "MVMoE/8E": (dict(there.mvmoe(8, PUBLISHED)), 6_916_480),
    "MVMoE/16E": (dict(there.mvmoe(16, PUBLISHED)), 13_385_088),
    "POMO CVRP, one VRP": (dict(there.mvmoe(0, PUBLISHED, features=3, context=1)), 1_254_016),
    "POMO OVRPTW": (dict(there.mvmoe(0, PUBLISHED, features=5, context=3)), 1_254_528),
}


@pytest.mark.parametrize("name", PRINTED)
def test_shapes_add_up_to_the_printed_sizes(name: str) -> None:
    shapes, size = PRINTED[name]
    assert parameters(shapes) == size


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


# -- there and back, and on -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_exported_weights_are_the_file_that_was_imported(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    state = state_of(case)
    imported(tmp_path, case, content_of(case, state))
    said = export_weights(tmp_path / "ours.safetensors", tmp_path / "back.pt")
    assert case.layout in said
    back = torch.load(tmp_path / "back.pt", weights_only=True)
    (holder,) = back
    assert holder in content_of(case, state)
    assert back[holder].keys() == state.keys()
    for key, tensor in state.items():
        assert torch.equal(back[holder][key], tensor), key


@pytest.mark.parametrize("name", CASES)
def test_imported_networks_decode(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    net = imported(tmp_path, case, content_of(case, state_of(case)))
    variant = case.arguments.get("inputs", "CVRP") if case.problem == "vrp" else None
    dataset = Dataset(problem=case.problem, n=8, count=3, variant=variant)  # type: ignore[arg-type]
    spec = SPEC.of(case.problem)  # type: ignore[arg-type]
    instances = spec.instances(dataset)
    found = decode(case.problem, net, instances, Decoding()).numpy()
    assert spec.lengths(instances, found).min() > 0  # raises for what is no solution


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
    elsewhere = {"GLOP's reviser", "GLOP-G's partition"}  # test_glop_layouts.py
    elsewhere |= {"MDAM for the TSP", "MDAM for the CVRP"}  # test_mdam.py
    assert {case.layout for case in CASES.values()} == {layout.name for layout in LAYOUTS} - elsewhere
    for case in CASES.values():
        found = recognise(state_of(case))
        assert found is not None
        assert found.name == case.layout


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["LEHD cvrp", "SIT tsp", "BQ tsp", "POMO cvrp", "ICAM tsp", "MVMoE/4E", "MVMoE/4E-L moe", "INViT cvrp"]
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


def test_variants_with_the_same_tensors_are_asked_for(tmp_path: Path) -> None:
    case = CASES["POMO OVRP"]._replace(arguments={})
    refused(tmp_path, case, content_of(case, state_of(case)), "OVRP or VRPL; give --argument inputs=OVRP")


def test_another_problem_than_is_said(tmp_path: Path) -> None:
    case = CASES["ICAM cvrp"]
    torch.save(content_of(case, state_of(case)), tmp_path / "theirs.pt")
    with pytest.raises(NeurouteError, match="laid out as ICAM for the CVRP, not as icam; leave out --network"):
        import_weights(tmp_path / "theirs.pt", tmp_path / "ours.safetensors", "icam", {})


def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    case = CASES["MVMoE/4E"]
    torch.save(content_of(case, state_of(case)), tmp_path / "whole.pt")
    whole = (tmp_path / "whole.pt").read_bytes()
    for share in (0.2, 0.9, 0.999):
        (tmp_path / "cut.pt").write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(NeurouteError, match=r"cut\.pt: not a readable torch file") as error:
            import_weights(tmp_path / "cut.pt", tmp_path / "ours.safetensors", None, {})
        assert "\n" not in str(error.value)
    assert not (tmp_path / "ours.safetensors").exists()


def test_a_network_without_a_published_layout_is_not_exported(tmp_path: Path) -> None:
    network = Network(kind="neuroute.networks.decoder_only:DecoderOnly", arguments={"depth": 1, "width": 8, "heads": 1})
    save_checkpoint(
        tmp_path / "a.safetensors", build(network), {"run": "x", "network": network.model_dump(), "code": ""}
    )
    with pytest.raises(NeurouteError, match="no published layout is known for DecoderOnly"):
        export_weights(tmp_path / "a.safetensors", tmp_path / "b.pt")
    assert not (tmp_path / "b.pt").exists()
