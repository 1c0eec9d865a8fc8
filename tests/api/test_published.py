"""Published test sets in the place of drawn ones: found by name, checked, kept as the plan reads them."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import done
from refusals import one_line

from neuroute.api.published import import_test_set
from neuroute.core.errors import NeurouteError
from neuroute.datasets.labels import make_labels
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.store import load_tours
from neuroute.datasets.streams import vrp_dataset
from neuroute.pipeline.plan.build import Plan, build_plan
from neuroute.pipeline.plan.config import parse_config
from neuroute.pipeline.rendering.protocol import protocol_lines
from neuroute.problems.instances.export import export
from neuroute.problems.instances.instance import Instances
from neuroute.problems.tsp import tour_length
from neuroute.problems.vrp import SWITCHES, lengths, to_routes
from neuroute.solvers.nearest import vrp_solutions
from neuroute.specs.data import Dataset, Labels

N, COUNT = 30, 40  # of `scaling` at smoke scale, with instances to spare
STEM = f"tsp_uniform_test_n{N}"


def tsp_file(folder: Path, name: str = f"test_TSP{N}_n{COUNT}.txt", n: int = N, count: int = COUNT) -> Path:
    """LEHD's format; tours are no good, which makes no difference."""
    rng = np.random.default_rng(0)
    tours = rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)
    export(Instances.of_arrays("set", {"points": rng.random((count, n, 2)), "solution": tours}), folder / name, "lehd")
    return folder / name


def settings(folder: Path, test_sets: Any = "published") -> dict[str, Any]:
    named = {"testsets_dir": str(folder), "test_sets": test_sets, "work_dir": str(folder / "work")}
    return {"scale": "smoke", "papers": ["scaling"], **named}


def plan_with(folder: Path, test_sets: Any = "published") -> Plan:
    return build_plan(parse_config(settings(folder, test_sets)))


def of(plan: Plan, stem: str) -> Labels:
    """The test set of a plan that took the place of a drawn one."""
    every = plan.label_jobs.values()
    return next(labels for labels in every if labels.dataset.stem.startswith(f"{stem}_") and labels.dataset.file)


def test_a_file_takes_the_place_of_the_drawn_set_of_its_size(tmp_path: Path) -> None:
    source, plan = tsp_file(tmp_path), plan_with(tmp_path)
    labels = of(plan, STEM)
    assert labels.solver == "published"
    (tmp_path / "config.yaml").write_text(json.dumps(settings(tmp_path)))
    done("label", labels.id, "--config", tmp_path / "config.yaml", "--workers", 1)
    made = json.loads(plan.manifest(labels.id).read_text())
    assert (made["labels"], made["solver"], made["solved"]) == (labels.id, "published", 0)
    assert made["version"] == f"published: {source.name}"
    spec = spec_of(labels)
    coords, tours = spec.instances(labels.dataset), load_tours(labels, plan.label_dirs)
    first = np.array(source.read_text().split(" output")[0].split(), dtype=np.float64).reshape(N, 2)
    np.testing.assert_array_equal(coords[0], first.astype(np.float32))
    assert (coords.shape, coords.dtype, len(tours)) == ((labels.dataset.count, N, 2), np.float32, labels.dataset.count)
    assert made["mean_length"] == pytest.approx(tour_length(coords, tours).mean())
    untouched = {labels.dataset.stem for labels in plan.label_jobs.values() if labels.dataset.file is None}
    assert {"tsp_uniform_test_n40", f"tsp_explosion_test_n{N}", "tsp_uniform_val_n20"} <= untouched
    (source_of,) = {line.aspects[0] for line in protocol_lines(plan, "scaling") if line.test[0].here == f"TSP{N}"}
    assert source_of.words == f"{STEM}_test_TSP{N}_n{COUNT} (paper: drawn)"


TOLD = f"test_TSP{N}_n{COUNT}.txt"


@pytest.mark.parametrize(
    ("files", "test_sets", "words"),
    [
        ((TOLD,), {STEM: "other.txt"}, f"test_sets.{STEM}: no file .*other.txt"),
        ((TOLD,), {"tsp_uniform_test_n31": TOLD}, "test_sets.tsp_uniform_test_n31: no test set of this plan"),
        ((TOLD, f"tsp{N}_again.txt"), "published", rf"could both be {STEM}; name one in config.yaml"),
        ((), "published", "test_sets: no folder .*nowhere; name it in testsets_dir"),
    ],
)
def test_wrong_names_are_refused(tmp_path: Path, files: tuple[str, ...], test_sets: Any, words: str) -> None:
    for name in files:
        tsp_file(tmp_path, name)
    with pytest.raises(NeurouteError, match=words):
        plan_with(tmp_path if files else tmp_path / "nowhere", test_sets)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"count": 5}, "5 instances, where 32 are asked for"),
        ({"n": 12}, "instances of 12 stops, not 30"),
        (None, r"mine.npz: holds no solutions"),
    ],
)
def test_sets_that_do_not_fit_are_refused_whole(tmp_path: Path, change: dict[str, int] | None, words: str) -> None:
    if change:
        source = tsp_file(tmp_path, "mine.txt", **change)
    else:
        source = tmp_path / "mine.npz"
        np.savez(source, coords=np.random.default_rng(0).random((COUNT, N, 2)))
    plan = plan_with(tmp_path, {STEM: source.name})
    labels = of(plan, STEM)
    with pytest.raises(NeurouteError, match=words):
        import_test_set(labels, plan.scale.source_of(labels.dataset), plan.label_store)
    assert not change or not list(plan.label_store.glob("*"))


# -- MVMoE's pickles --------------------------------------------------------------------------------------------------


def mvmoe_files(folder: Path, variant: str, n: int = 6, count: int = 4) -> Path:
    """Instances and solutions by two solvers, the second ones longer, as MVMoE's repository has them."""
    instances = vrp_dataset(Dataset(problem="vrp", variant=variant, n=n, count=count))
    solutions = vrp_solutions(instances)
    records, by_one, by_other = [], [], []
    for i in range(count):
        record = [instances.coords[i, :1].tolist(), instances.coords[i, 1:].tolist()]
        record += [instances.demand[i, 1:].astype(float).tolist(), float(instances.capacity[i])]
        record += [] if instances.limit is None else [float(instances.limit[i])]
        if instances.windows is not None and instances.service is not None:
            record += [instances.service[i, 1:].tolist(), *instances.windows[i, 1:].T.tolist()]
        records.append(tuple(record))
        routes = to_routes(solutions[i])
        by_one.append((lengths(instances[i : i + 1], solutions[i : i + 1])[0], flat(routes)))
        alone = [[customer] for route in routes for customer in route]
        order = np.array([[c for (c,) in alone], [1] * n])[None]
        by_other.append((lengths(instances[i : i + 1], order)[0], flat(alone)))
    name = f"{variant.lower()}{n}_uniform.pkl"
    for prefix, data in (("", records), ("hgs_", by_one), ("or_tools_20s_", by_other)):
        (folder / f"{prefix}{name}").write_bytes(pickle.dumps(data))
    return folder / name


def flat(routes: list[list[int]]) -> list[int]:
    return [visit for route in routes for visit in [*route, 0]][:-1]


def labels_of(folder: Path, variant: str, solver: str, n: int = 6, count: int = 3) -> Labels:
    kept = str(folder / f"{variant}_kept.npz")
    return Labels(dataset=Dataset(problem="vrp", variant=variant, n=n, count=count, file=kept), solver=solver)


@pytest.mark.parametrize("variant", ["CVRP", "OVRP", "VRPB", "VRPL", "VRPTW", "OVRPBLTW"])
def test_pickles_of_mvmoe_bring_the_solutions_of_all_solvers(tmp_path: Path, variant: str) -> None:
    source, drawn = mvmoe_files(tmp_path, variant), vrp_dataset(Dataset(problem="vrp", variant=variant, n=6, count=3))
    means = {}
    for solver in ("published", "hgs-long", "ortools", "lkh3"):
        labels = labels_of(tmp_path, variant, solver)
        import_test_set(labels, source, tmp_path)
        if solver == "lkh3":  # of which there is no file: it would have to solve
            assert not (tmp_path / labels.shard_file(0)).exists()
            continue
        means[solver] = make_labels(labels, tmp_path, [], 1)["mean_length"]
        again = spec_of(labels).instances(labels.dataset)
        for name in ("coords", "demand", "capacity", "limit", "windows", "service"):
            np.testing.assert_array_equal(getattr(again, name), getattr(drawn, name))
        assert again.open == SWITCHES[variant].open
    assert means["published"] == means["hgs-long"] < means["ortools"]  # the solver with the best mean, as in the paper


@pytest.mark.parametrize(
    ("variant", "place", "change", "words"),
    [
        ("VRPL", None, lambda data: data[:-1], r"hgs_.*: 3 solutions of 4 instances"),
        ("VRPL", 1, lambda each: (each[0] * 1.01, each[1]), "instance 1: its stated cost is not that of"),
        ("VRPL", 2, lambda each: (each[0], each[1][1:]), "instance 2: its solution does not serve every"),
        ("VRPL", 0, lambda each: [None, 3], r"instance 0: \(cost, customers\) is expected"),
        ("CVRP", 1, lambda each: (*each[:3], 9.0), "instance 1: its solution in .* does not serve every customer"),
    ],
)
def test_solutions_that_do_not_fit_are_refused_by_instance(
    tmp_path: Path, variant: str, place: int | None, change: Callable[[Any], Any], words: str
) -> None:
    """Changed solutions, and of the CVRP a capacity that they exceed."""
    source = mvmoe_files(tmp_path, variant)
    changed = source if variant == "CVRP" else source.with_name(f"hgs_{source.name}")
    data = pickle.loads(changed.read_bytes())
    if place is None:
        data = change(data)
    else:
        data[place] = change(data[place])
    changed.write_bytes(pickle.dumps(data))
    labels = labels_of(tmp_path, variant, "published")
    with one_line(words):
        import_test_set(labels, source, tmp_path)
    assert not (tmp_path / labels.shard_file(0)).exists()


def test_code_in_a_pickle_is_not_executed(tmp_path: Path) -> None:
    class Bad:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "executed",))

    source = mvmoe_files(tmp_path, "CVRP")
    source.with_name(f"hgs_{source.name}").write_bytes(pickle.dumps([Bad()]))
    with pytest.raises(NeurouteError, match="only lists of numbers and numpy arrays are read"):
        import_test_set(labels_of(tmp_path, "CVRP", "published"), source, tmp_path)
    assert not (tmp_path / "executed").exists()
