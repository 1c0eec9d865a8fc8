"""`neuroute evaluate --model --data`: right numbers on data of any kind, and one line for what does not fit."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from untrained import done, refused, tsp_text, untrained

from neuroute.api.evaluate import evaluate, find_instances
from neuroute.api.files import load, read_instances
from neuroute.api.model import load_model
from neuroute.core.errors import NeurouteError
from neuroute.decoding.decode import decode, instances_per_batch
from neuroute.evaluation.loaded import COLUMNS
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import load_config
from neuroute.problems.cvrp import cost
from neuroute.problems.instances.instance import Instances
from neuroute.problems.tsp import tour_length
from neuroute.problems.vrp import Vrp
from neuroute.specs.decodings import revise
from neuroute.specs.objects import Decoding, Network

NETWORK = Network(
    kind="neuroute.networks.decoder_only:DecoderOnly", arguments={"depth": 2, "width": 8, "heads": 2, "train_nodes": 20}
)
COORDS = np.random.default_rng(3).random((5, 9, 2))
TOURS = np.stack([np.random.default_rng(i).permutation(9) for i in range(5)])
MINE = Instances.of_arrays("mine", {"points": COORDS})
SQUARE = tsp_text([(0, 0), (5, 1), (9, 0), (10, 8), (4, 9)])


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return untrained(tmp_path / "model.safetensors", NETWORK, "scaling/x")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    np.savez(tmp_path / "mine.npz", coords=COORDS, tour=TOURS)
    return tmp_path / "mine.npz"


MANY_STARTS = Network(
    kind="neuroute.networks.icam:Icam", arguments={"depth": 1, "width": 16, "feed_forward": 16, "train_nodes": 20}
)
CVRP_NETWORK = Network(
    kind="neuroute.networks.lehd:LehdCvrp",
    arguments={"depth": 1, "width": 8, "heads": 2, "feed_forward": 8, "train_nodes": 20},
)
DEMAND, CAPACITY = np.tile([0, 3, 1, 4, 1, 5, 2, 6, 5], (5, 1)), np.full(5, 11)
ROUTES = np.tile([[*range(1, 9)], [1, 0, 0, 1, 0, 1, 0, 1]], (5, 1, 1))
RRC, BEAM = Decoding(method="rrc", iterations=3), Decoding(method="beam", beam=2)
INSERTION = Decoding(method="prc", iterations=3, start="insertion", longest=5)


@pytest.mark.parametrize(
    ("network", "options", "decoding"),
    [
        (NETWORK, "", Decoding()),
        (NETWORK, "--beam 2", BEAM),
        (NETWORK, "--rrc 3", RRC),
        (NETWORK, "--limit 2", Decoding()),
        (NETWORK, "--prc 3 --start insertion --longest 5", INSERTION),
        (NETWORK, "--revise 5x2,w3,noflips", revise((5, 2), width=3, flips="none")),
        (MANY_STARTS, "", Decoding(starts="all")),
        (MANY_STARTS, "--decoding multistart4", Decoding(starts=4)),
        (MANY_STARTS, "--images 3", Decoding(starts="all", images=3)),
        (MANY_STARTS, "--starts all --augment", Decoding(starts="all", augment=True)),
        (CVRP_NETWORK, "", Decoding()),
        (CVRP_NETWORK, "--rrc 3", RRC),
        (CVRP_NETWORK, "--prc 3 --start insertion --longest 5", INSERTION),
    ],
)
def test_numbers_are_those_of_the_decoded_solutions(
    tmp_path: Path, data: Path, network: Network, options: str, decoding: Decoding
) -> None:
    model, out = untrained(tmp_path / "m.safetensors", network, "x/y"), tmp_path / "out" / "records.csv"
    count, n, net = 2 if "--limit" in options else 5, 9, load_model(model, "cpu").net
    if network is CVRP_NETWORK:
        node, via_depot = ROUTES.swapaxes(0, 1)
        np.savez(data, coords=COORDS, demand=DEMAND, capacity=CAPACITY, node=node, via_depot=via_depot)
        seen, n = Vrp(COORDS.astype(np.float32), DEMAND, CAPACITY), 8
        solutions = decode("cvrp", net, seen, decoding).numpy()
        own, reference = (cost(Vrp(COORDS, DEMAND, CAPACITY), each) for each in (solutions, ROUTES))
    else:
        tours = decode("tsp", net, COORDS.astype(np.float32), decoding).numpy()
        own, reference = (tour_length(COORDS, each)[:count] for each in (tours, TOURS))
    text = done("evaluate", "--model", model, "--data", data, "--out", out, *options.split())
    records = pd.read_csv(out)
    assert tuple(records.columns) == COLUMNS
    values = records.set_index("metric").value
    assert values["length"] == pytest.approx(own.mean())
    assert values["gap_pct"] == pytest.approx(100 * (own.mean() / reference.mean() - 1))
    assert values["gap_mean_of_ratios_pct"] == pytest.approx(100 * np.mean(own / reference - 1))
    assert (records.n_instances == count).all()
    with np.load(out.with_suffix(".npz")) as file:
        np.testing.assert_allclose(file[f"mine|{decoding.name}"], own)
    assert f"mine: {count} instances, n = {n}" in text
    assert f"{values['gap_pct']:.3f} % (of mean lengths)" in text
    assert f"{values['length']:.5f}" in text
    assert decoding.name in text


def test_random_images_do_not_depend_on_how_many_instances_fit(tmp_path: Path) -> None:
    model, how = load_model(untrained(tmp_path / "m.safetensors", MANY_STARTS, "x/y"), "cpu"), Decoding(images=3)
    assert (
        instances_per_batch(model.net, MINE.n, how, 4.0)
        > MINE.count
        > instances_per_batch(model.net, MINE.n, how, 5e-5)
    )
    few, all_at_once = (evaluate(model, MINE, how, memory_gb).lengths for memory_gb in (5e-5, 4.0))
    np.testing.assert_allclose(few, all_at_once)


def test_tsplib_files_are_measured_in_their_own_units_by_both_distances(
    tmp_path: Path, checkpoint: Path, public: Callable[[str], Path]
) -> None:
    berlin = public("benchmarks/tsplib/berlin52.tsp")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "berlin52.tsp").write_bytes(berlin.read_bytes())
    (tmp_path / "set" / "square.tsp").write_text(SQUARE)
    model = load_model(checkpoint, "cpu")
    text = str(evaluate(model, read_instances(tmp_path / "set"), Decoding(), None, tmp_path / "r.csv"))
    instance = load(berlin)
    tour = decode("tsp", model.net, instance.inputs(), Decoding())[0].numpy()
    records = pd.read_csv(tmp_path / "r.csv").set_index(["test", "metric"]).value
    gap = 100 * (instance.length(tour, rounded=False) / 7542 - 1)
    assert records["berlin52", "gap_mean_of_ratios_pct"] == pytest.approx(gap)
    assert records["berlin52", "gap_rounded_pct"] == pytest.approx(100 * (instance.length(tour) / 7542 - 1))
    assert ("square", "gap_pct") not in records.index
    assert "2 instances, n = 5 to 52" in text
    assert "on the 1 instances with a reference" in text


def test_instances_of_one_size_with_references_and_without_are_kept_apart(tmp_path: Path, checkpoint: Path) -> None:
    bests = (None, 3.0, None, 3.0, 3.0)
    mixed = [replace(each, best_known=best) for each, best in zip(MINE.members, bests, strict=True)]
    result = evaluate(load_model(checkpoint, "cpu"), mixed, Decoding(), out=tmp_path / "r.csv")
    records = pd.read_csv(tmp_path / "r.csv")
    assert not records.duplicated(["test", "metric"]).any()
    with np.load(tmp_path / "r.npz") as file:
        kept = np.concatenate([file[key] for key in file.files])
    with_reference_first = [1, 3, 4, 0, 2]  # the groups; the result has the order given
    np.testing.assert_array_equal(kept, result.lengths[with_reference_first])


def test_names_are_found_in_the_config_s_folder_and_in_the_plan(
    tmp_path: Path, checkpoint: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(__file__).resolve().parents[2]
    config = tmp_path / "config.yaml"
    config.write_text(f"scale: smoke\ndevice: cpu\nwork_dir: {tmp_path}/work\ntestsets_dir: {tmp_path}\n")
    monkeypatch.chdir(root)
    named = ("evaluate", "--model", checkpoint, "--config", config, "--data")
    assert "mine: 5 instances" in done(*named, "mine")
    assert "theirs: no such file, nor" in refused(*named, "theirs")
    unlabelled = next(iter(build_plan(load_config(config)).label_jobs.values())).dataset.id
    assert "neuroute label" in refused(*named, unlabelled)  # of the plan, but not labelled yet


def test_prc_needs_room_for_its_sub_paths_alone(tmp_path: Path, checkpoint: Path, data: Path) -> None:
    """Where a whole instance does not fit, what has been found is written all the same."""
    loaded, instances = load_model(checkpoint, "cpu"), find_instances(str(data), None, {}, [], "--data")
    decoding = Decoding(method="prc", iterations=2, start="insertion", longest=4)
    whole = 4 * 16 * 8 * 10 / 1e9  # what nine nodes take at width 8
    out = tmp_path / "found.csv"
    evaluate(loaded, instances, decoding, 0.8 * whole, out)
    assert out.exists()
    with pytest.raises(NeurouteError, match="needs about"):
        evaluate(loaded, instances, Decoding(), 0.8 * whole, tmp_path / "none.csv")


def test_what_does_not_fit_is_one_line_and_writes_nothing(tmp_path: Path, checkpoint: Path, data: Path) -> None:
    np.savez(tmp_path / "bad.npz", coords=COORDS, tour=np.zeros((5, 9), int))
    cases: list[tuple[tuple[object, ...], str]] = [
        (("--model", checkpoint), "--model and --data"),
        (("scaling/x", "--model", checkpoint, "--data", data), "either an evaluation of the plan"),
        (("--model", tmp_path / "none", "--data", data), "no such checkpoint"),
        (("--model", checkpoint, "--data", tmp_path / "bad.npz"), "instance 0: its tour does not visit"),
        (("--model", checkpoint, "--data", data, "--prc", 2, "--longest", 10), "mine: --longest 10 is more than its 9"),
        *(
            (("--model", checkpoint, "--data", data, "--revise", text), f"--revise {text}: give NODESxITERATIONS")
            for text in ("100", "5x0", "5x2,flips")
        ),
        (("--model", checkpoint, "--data", data, "--device", "tpu"), "device: Input should be"),
    ]
    for arguments, message in cases:
        assert message in refused("evaluate", *arguments, "--out", tmp_path / "r.csv")
    assert "written as .csv" in refused("evaluate", "--model", checkpoint, "--data", data, "--out", tmp_path / "r.txt")
    assert not list(tmp_path.glob("r.*"))
    cvrp = Instances.of_batch("c", Vrp(COORDS, DEMAND, CAPACITY), "cvrp")
    with pytest.raises(NeurouteError, match="c: holds CVRP instances, but scaling/x solves TSP"):
        evaluate(load_model(checkpoint, "cpu"), cvrp, Decoding(), None, None)
    model = load_model(untrained(tmp_path / "c", CVRP_NETWORK, "scaling/c"), "cpu")
    with pytest.raises(NeurouteError, match="mine: holds TSP instances, but scaling/c solves CVRP"):
        evaluate(model, MINE, Decoding(), None, None)
