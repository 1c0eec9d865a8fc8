"""One tiny training of each kind is as before: names and shapes of its weights, its first loss, where labels took it.

`golden.csv` has them; `pytest tests/training/test_golden_trainings.py --renew-golden` renews it.
"""

import csv
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny
import tiny_reinforced
import tiny_reinforced_vrp
import tiny_rounds
import tiny_systems
from neuroute.networks.weights import build, load_checkpoint
from neuroute.specs.objects import Run

GOLDEN = Path(__file__).with_name("golden.csv")
RUNS: dict[str, tuple[Callable[[], Run], str]] = {  # name -> (run, store of its labels)
    "supervised": (tiny.make_run, "store"),
    "supervised_pairs": (tiny.pens_run, "store"),
    "supervised_cvrp": (tiny.cvrp_run, "cvrp_store"),
    "self_improvement": (tiny.self_improving, "store"),
    "self_improvement_cvrp": (lambda: tiny.self_improving("cvrp"), "cvrp_store"),
    "reconstruction": (lambda: tiny_rounds.make_run("tsp"), "rounds_store"),
    "reconstruction_cvrp": (lambda: tiny_rounds.make_run("cvrp"), "rounds_store"),
    "reinforce": (lambda: tiny_reinforced.make_run(*tiny_reinforced.STAGES, kind="icam"), "store"),
    "reinforce_cvrp": (lambda: tiny_reinforced.make_run(*tiny_reinforced.STAGES, kind="icam_cvrp"), "cvrp_store"),
    "reinforce_vrp": (tiny_reinforced_vrp.make_run, "vrp_store"),
    "rollout_baseline": (tiny_reinforced.rollout_run, "store"),
    "beam_pool": (tiny.pooled, "store"),
    "revising": (tiny_systems.revising_run, "glop_store"),
    "att_gcn": (lambda: tiny_systems.map_run("AttGcn"), "store"),
    "difusco": (lambda: tiny_systems.map_run("Difusco"), "store"),
    "dimes": (tiny_systems.dimes_run, "store"),
    "mdam": (lambda: tiny_systems.mdam_run("tsp"), "store"),
    "htsp": (tiny_systems.htsp_run, "store"),
}
COLUMNS = ("training", "parameters", "names", "loss", "moved", "towards")
NEAR = 0.02


def trained(name: str, run: Run, folder: Path, store: Path) -> dict[str, Any]:
    """`names`: digest of names and shapes; `loss`: the first one that is logged.

    Of trainings by given labels also `moved`, the distance of all weights, and `towards`, its share along cosines: the
    others choose among tours that are as good as equal, which processors round each in their way.
    """
    out = tiny.run_training(run, folder, store)
    net, _ = load_checkpoint(out / "model.safetensors")
    torch.manual_seed(run.seed)
    start = build(run.network).state_dict()
    names = " ".join(f"{name}{tuple(w.shape)}" for name, w in net.state_dict().items())
    floats = {name: w for name, w in net.state_dict().items() if w.is_floating_point()}
    change = torch.cat([(w - start[name]).double().flatten() for name, w in floats.items()])
    assert change.isfinite().all()
    assert change.any()
    result: dict[str, Any] = {
        "parameters": len(change),
        "names": hashlib.sha256(names.encode()).hexdigest()[:10],
        "loss": next(line["loss"] for line in tiny.log_lines(out, "train") if line["loss"]),
    }
    if name.startswith("supervised"):
        along = torch.cos(torch.arange(len(change), dtype=torch.float64))
        result |= {"moved": float(change.norm()), "towards": float(change @ along / along.norm())}
    return result


@pytest.fixture(scope="session")
def glop_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.label_store(tmp_path_factory.mktemp("labels"), tiny.labels("val", 8))


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", RUNS)
def test_a_training_is_as_before(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    make, store = RUNS[name]
    now = trained(name, make(), tmp_path, request.getfixturevalue(store))
    with GOLDEN.open(newline="") as file:
        golden = {row["training"]: row for row in csv.DictReader(file)}
    if request.config.getoption("--renew-golden"):
        golden[name] = {"training": name} | {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in now.items()}
        with GOLDEN.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(golden[each] for each in RUNS if each in golden)
        return
    before = golden[name]
    assert (str(now["parameters"]), now["names"]) == (before["parameters"], before["names"])
    assert now["loss"] == pytest.approx(float(before["loss"]), rel=NEAR, abs=NEAR)
    if "moved" in now:
        moved, share = float(before["moved"]), now["parameters"] ** -0.5
        assert now["moved"] == pytest.approx(moved, rel=NEAR)
        assert now["towards"] == pytest.approx(float(before["towards"]), abs=3 * NEAR * moved * share)
