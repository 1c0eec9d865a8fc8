"""The label store: what is made, what is reused, and what is refused."""

import json
import shutil
from importlib.util import find_spec
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from refusals import one_line

from neuroute.core.errors import NeurouteError
from neuroute.datasets import chunks, labels
from neuroute.datasets.labels import make_labels, pack_labels, restore_labels, solve_part
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.store import check_made, iterate_shards, load_tours
from neuroute.datasets.streams import coordinates, cvrp_dataset, dataset_coordinates
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.tsp import tour_length
from neuroute.problems.vrp import from_routes
from neuroute.solvers.base import Solver, missing
from neuroute.solvers.registry import get
from neuroute.specs.objects import SHARD, Dataset, Labels
from neuroute.training.supervised import TrainingSet
from tours import wanted

HGS = pytest.mark.skipif(find_spec("hygese") is None, reason="no HGS on this machine")


def test_manifest_of_a_test_set_has_each_length(tmp_path):
    tests = Labels(dataset=Dataset(split="test", n=10, count=30), solver="lkh")
    manifest = make_labels(tests, tmp_path, [], workers=1)
    tours = load_tours(tests, [tmp_path])
    np.testing.assert_allclose(manifest["lengths"], tour_length(dataset_coordinates(tests.dataset), tours))
    assert manifest["mean_length"] == pytest.approx(np.mean(manifest["lengths"]))
    json.dumps(manifest)
    training = Labels(dataset=Dataset(split="train", n=10, count=30), solver="insertion")
    assert "lengths" not in make_labels(training, tmp_path, [], workers=1)


@pytest.mark.parametrize(
    ("block", "shape"),
    [
        (wanted(250), (250, 10)),
        (wanted(2, n=300), (2, 300)),
        pytest.param(wanted(12, 6, "hgs-short", problem="cvrp"), (12, 2, 6), marks=HGS),
    ],
    ids=["tsp", "in two bytes", "cvrp"],
)
def test_manifest_says_what_was_made(tmp_path, block, shape):
    manifest = make_labels(block, tmp_path, [], workers=1)
    solutions, spec = load_tours(block, [tmp_path]), spec_of(block)
    assert (solutions.dtype, solutions.shape) == (np.uint16 if block.dataset.n > 256 else np.uint8, shape)
    np.testing.assert_array_equal(spec.canonical(solutions), solutions)
    instances = spec.instances(block.dataset)
    assert spec.valid(instances, solutions).all()
    assert manifest["mean_length"] == pytest.approx(spec.lengths(instances, solutions).mean())
    assert (manifest["solved"], manifest["cached"], manifest["count"]) == (shape[0], 0, shape[0])
    assert manifest["solver"] == block.solver
    assert manifest["seconds"] > 0
    assert manifest["shards"][0]["rows"] == shape[0]
    json.dumps(manifest)
    again = make_labels(block, tmp_path, [], workers=1)
    assert (again.pop("solved"), again.pop("cached")) == (0, shape[0])
    assert again == {k: v for k, v in manifest.items() if k not in ("solved", "cached")}
    assert not [path for path in (tmp_path / ".partial").iterdir() if path.is_dir()]


def test_tours_do_not_depend_on_workers_or_on_the_order_of_requests(tmp_path):
    make_labels(wanted(250), tmp_path / "one", [], workers=1)
    for count in (3, 120, 250):
        make_labels(wanted(count), tmp_path / "steps", [], workers=1)
    make_labels(wanted(250), tmp_path / "two", [], workers=2)
    name = wanted(1).shard_file(0)
    whole = (tmp_path / "one" / name).read_bytes()
    assert (tmp_path / "steps" / name).read_bytes() == whole
    assert (tmp_path / "two" / name).read_bytes() == whole


def test_a_data_set_across_shards(tmp_path):
    block = wanted(6, n=5, first=SHARD - 4)
    manifest = make_labels(block, tmp_path, [], workers=1)
    assert [(s["shard"], s["rows"]) for s in manifest["shards"]] == [(0, 4), (1, 2)]
    assert [first for first, _ in iterate_shards(block, [tmp_path])] == [SHARD - 4, SHARD]
    tours = load_tours(block, [tmp_path])
    lengths = tour_length(coordinates("uniform", "test", 5, SHARD - 4, 6), tours)
    assert lengths.mean() == pytest.approx(manifest["mean_length"])


def test_parts_of_a_data_set_are_solved_apart(tmp_path, monkeypatch):
    block, store = wanted(45, n=400), tmp_path / "store"
    make_labels(block, tmp_path / "whole", [], workers=1)
    make_labels(wanted(5, n=400), store, [], workers=1)
    solved = [solve_part(block, store, [], (k, 3)) for k in (2, 0, 1)]
    assert sum(solved) == 40
    assert min(solved) > 10
    assert solve_part(block, store, [], (1, 3)) == 0
    name = block.shard_file(0)
    assert len(np.load(store / name)) == 5
    monkeypatch.setattr(chunks, "solve_chunk", lambda *a: pytest.fail("solved again"))
    make_labels(block, store, [], workers=1)
    assert (store / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_cache_is_used_before_the_solver_and_the_longest_wins(tmp_path, monkeypatch):
    for name, count in (("short", 20), ("long", 90)):
        make_labels(wanted(count), tmp_path / name, [], workers=1)
    before = _written(tmp_path / "long")
    with monkeypatch.context() as patch:
        patch.setattr(labels, "solve_chunks", lambda *a: pytest.fail("solved"))
        patch.setattr(labels, "get", lambda name: _missing_solver())
        manifest = make_labels(wanted(80), tmp_path / "store", [tmp_path / "short", tmp_path / "long"], workers=1)
    assert (manifest["solved"], manifest["cached"]) == (0, 80)
    sidecar = json.loads((tmp_path / "long" / wanted(1).shard_file(0)).with_suffix(".json").read_text())
    assert manifest["seconds"] == pytest.approx(sidecar["seconds"] * 80 / 90)
    manifest = make_labels(wanted(120), tmp_path / "store", [tmp_path / "long"], workers=1)
    assert (manifest["solved"], manifest["cached"]) == (30, 90)
    assert _written(tmp_path / "long") == before  # it may lie on a disk that is read only
    make_labels(wanted(120), tmp_path / "plain", [], workers=1)
    name = wanted(1).shard_file(0)
    assert (tmp_path / "store" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()


def _written(folder: Path) -> dict[Path, int]:
    """When each file and folder there was last written."""
    return {path: path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))}


def _missing_solver() -> Solver:
    def absent(*_: object) -> str:
        raise missing("insertion", "get it")

    return Solver("insertion", False, "get it", absent, absent)  # type: ignore[arg-type]


def test_a_missing_solver_is_found_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(labels, "get", lambda name: _missing_solver())
    with pytest.raises(NeurouteError, match="'insertion' is not installed; get it"):
        make_labels(wanted(5), tmp_path / "store", [], workers=2)
    assert not list((tmp_path / "store").iterdir())


def test_rows_of_unknown_making_have_no_seconds(tmp_path):
    make_labels(wanted(20), tmp_path / "cache", [], workers=1)
    (tmp_path / "cache" / wanted(1).shard_file(0)).with_suffix(".json").unlink()
    manifest = make_labels(wanted(30), tmp_path / "store", [tmp_path / "cache"], workers=1)
    assert manifest["seconds"] is None
    assert manifest["version"] is None
    assert manifest["solver"] == "insertion"


@pytest.fixture(scope="module")
def twenty(tmp_path_factory):
    """A store of twenty tours of 30 nodes."""
    pytest.importorskip("elkai")
    store = tmp_path_factory.mktemp("twenty")
    make_labels(wanted(20, n=30, solver="lkh"), store, [], workers=1)
    return store


@pytest.mark.parametrize("place", ["store", "cache"])
@pytest.mark.parametrize(
    ("suffix", "change", "message"),
    [
        (".npy", lambda data: data[:-7], "cut short"),
        (".npy", lambda data: b"", "cut short"),
        (".npy", lambda tours: tours.astype(np.int64), "int64"),
        (".npy", lambda tours: tours[:, :-1], r"\(20, 29\)"),
        (".npy", lambda tours: tours * (np.arange(20) != 3)[:, None], "row 3 does not visit every node once"),
        (".npy", lambda tours: np.roll(tours, 1, axis=0), r"row \d+ is longer than the nearest-neighbour tour"),
        (".json", lambda text: text.replace(b'"instances_sha256": "', b'"instances_sha256": "0'), "instances_sha256"),
        (".json", lambda text: b"{", "no valid sidecar"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, twenty, place, suffix, change, message):
    block = wanted(20, n=30, solver="lkh")
    shutil.copytree(twenty, tmp_path / place)
    file = (tmp_path / place / block.shard_file(0)).with_suffix(suffix)
    if message == "cut short" or suffix == ".json":
        file.write_bytes(change(file.read_bytes()))
    else:
        np.save(file, change(np.load(file)))
    with one_line(f"{place}/.*{message}.*run again"):
        make_labels(block, tmp_path / "store", [tmp_path / "cache"], workers=1)


def test_missing_tours_name_the_command(tmp_path):
    with pytest.raises(NeurouteError, match=r"no 5 tours in .*neuroute label"):
        load_tours(wanted(5), [tmp_path])
    make_labels(wanted(4), tmp_path, [], workers=1)
    with pytest.raises(NeurouteError, match="no 5 tours"):
        load_tours(wanted(5), [tmp_path])
    check_made([wanted(4)], [tmp_path])
    with one_line(f"{wanted(5).id}: 1 of 5 solutions are not in {tmp_path}.*label {wanted(5).id}"):
        check_made([wanted(4), wanted(5)], [tmp_path])


def test_the_shared_cache_needs_no_solver(tmp_path, shared):
    manifest = make_labels(wanted(SHARD, n=100, solver="concorde"), tmp_path, [shared / "labels"], workers=2)
    assert manifest["solved"] == 0
    assert manifest["mean_length"] == pytest.approx(7.766107, abs=5e-7)


def test_loading_refuses_what_is_no_tour(tmp_path: Path) -> None:
    labels_made = wanted(6)
    make_labels(labels_made, tmp_path, [], workers=1)
    path = tmp_path / labels_made.shard_file(0)
    tours = np.load(path)
    tours[4] = 0
    np.save(path, tours)
    with pytest.raises(NeurouteError, match=r"row 4 is not a tour; delete it and rerun its `neuroute label`"):
        load_tours(labels_made, [tmp_path])


def test_rows_are_those_that_the_manifest_states(tmp_path: Path) -> None:
    block, store, manifests = wanted(20), tmp_path / "labels", tmp_path / "manifests"
    manifest = make_labels(block, store, [], workers=1)
    manifests.mkdir()
    (manifests / f"{block.id}.json").write_text(json.dumps(manifest))
    before = load_tours(block, [store, manifests])
    file = store / block.shard_file(0)
    altered = before.copy()
    altered[[0, 1]] = altered[[1, 0]]  # tours as good as any, but of each other's instances
    np.save(file, altered)
    message = f"{file.name}: rows 0..19 differ from the manifest of {block.id};.*neuroute label {block.id}"
    with pytest.raises(NeurouteError, match=message):
        load_tours(block, [store, manifests])
    with pytest.raises(NeurouteError, match=message):
        TrainingSet([block], [store, manifests], seed=0, shuffle=True).batch(0, 0, 5)
    turned = np.concatenate([before[:, :1], before[:, :0:-1]], axis=1)
    np.save(file, turned)  # the same tours, the other way round: a cache may have them so
    np.testing.assert_array_equal(load_tours(block, [store, manifests]), turned)


# -- of the CVRP -------------------------------------------------------------------------------------------------------


@HGS
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s[:, ::-1].copy(), "row 0 does not serve every customer once within the capacity"),
        (lambda s: np.stack([s[:, 0], np.eye(1, s.shape[2], dtype=np.uint8).repeat(len(s), 0)], 1), "row 0 does not"),
        (lambda s: s[:, 0].copy(), r"uint8 \(12, 20\) where uint8 \(up to 10000, 2, 20\) is expected"),
        (lambda s: s.astype(np.int32), "int32 .* where uint8"),
    ],
)
def test_solutions_that_do_not_fit_are_refused(tmp_path, change, message):
    block = wanted(12, 20, "hgs-short", problem="cvrp")
    make_labels(block, tmp_path, [], workers=1)
    path = tmp_path / block.shard_file(0)
    np.save(path, change(np.load(path)))
    with one_line(message):
        make_labels(block, tmp_path, [], workers=1)
    with pytest.raises(NeurouteError):
        load_tours(block, [tmp_path])


@HGS
def test_hgs_finds_the_optimum_of_tiny_instances_and_repeats_itself():
    batch = cvrp_dataset(Dataset(problem="cvrp", n=5, count=3))
    every = np.array([[o, (1, *v)] for o in permutations(range(1, 6)) for v in product((0, 1), repeat=4)])
    for row in range(3):
        one = batch[np.full(len(every), row)]
        best = cost(one, every)[is_feasible(one, every)].min()
        arguments = batch.coords[row], batch.demand[row], int(batch.capacity[row]), 7
        routes = get("hgs-short").solve_cvrp(*arguments)
        assert routes == get("hgs-short").solve_cvrp(*arguments)
        assert cost(batch[row : row + 1], from_routes(routes)[None])[0] == pytest.approx(best)


@HGS
def test_a_search_without_a_feasible_solution_is_made_longer():
    """A hundred iterations find none for this instance, a thousand do."""
    one = cvrp_dataset(Dataset(problem="cvrp", split="train", n=10, first=488, count=1))
    routes = get("hgs-short").solve_cvrp(one.coords[0], one.demand[0], int(one.capacity[0]), 0)
    assert is_feasible(one, from_routes(routes)[None]).all()


def test_what_a_job_has_left_fills_an_empty_store_with_the_same_rows(tmp_path):
    there, elsewhere, packed = tmp_path / "there", tmp_path / "elsewhere", tmp_path / "job.npz"
    block = wanted(250)
    make_labels(block, there, [], workers=1)
    pack_labels(block, there, packed)
    again = packed.read_bytes()
    pack_labels(block, there, packed)
    assert packed.read_bytes() == again
    for _ in range(2):  # what is there stays
        restore_labels([block, block], elsewhere, lambda _: packed)
        np.testing.assert_array_equal(load_tours(block, [elsewhere]), load_tours(block, [there]))
    content = bytearray(again)
    content[len(content) // 3] ^= 1
    packed.write_bytes(content)
    with one_line("job.npz", "make it again"):
        restore_labels([block], tmp_path / "third", lambda _: packed)
