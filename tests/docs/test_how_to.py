"""Commands of how-to pages, run in a folder with small files of the names that the pages use."""

import importlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
import torch
from commands import done
from untrained import ready, tsp_text, untrained, vrp_text

import published_code
from neuroute.api.classical import available
from neuroute.networks.import_weights import layouts
from neuroute.networks.lehd import Lehd
from neuroute.pipeline.plan import needs
from neuroute.specs.objects import Dataset, Labels, Network
from pages import PAGES as EVERY_PAGE
from pages import ROOT, blocks, lines, name_of

PAGES = [ROOT / "docs" / "how-to" / name for name in ("own_data.md", "own_network.md", "published_weights.md")]
N = 12
SHAPE = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 32}
MODELS = {
    "tsp.safetensors": ("lehd:Lehd", SHAPE | {"train_nodes": 20}),
    "cvrp.safetensors": ("sit:SitCvrp", SHAPE | {"train_nodes": 20}),
    "model.safetensors": ("lehd:Lehd", SHAPE | {"train_nodes": 20}),
    "icam.safetensors": ("icam:Icam", {"depth": 1, "width": 16, "feed_forward": 32}),
    "work/smoke/runs/mvmoe/moe4e_50/model.safetensors": ("mvmoe:MvMoe", SHAPE),
}
SMALL = 'batches=2, batch_size=4, validate_on=4, solver="nearest", workers=1, device="cpu"'  # a training
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, (kind, arguments) in MODELS.items():
        network = Network(kind=f"neuroute.networks.{kind}", arguments=arguments)
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        untrained(Path(name), network, "docs/x")
    lehd = ready(Network(kind="neuroute.networks.lehd:Lehd", arguments=SHAPE))
    torch.save({"model_state_dict": lehd.state_dict()}, "lehd.pt")
    icam = published_code.weights(dict(published_code.icam("tsp", published_code.Size())))
    torch.save(published_code.trained(icam), "checkpoint-3000.pt")
    Path("my_module.py").write_text("from neuroute.networks.lehd import Lehd\n\n\nclass MyNet(Lehd):\n    pass\n")
    torch.save(Lehd(depth=3).state_dict(), "mine.pt")
    points = np.random.default_rng(0).integers(0, 100, (N, 2))
    Path("berlin52.tsp").write_text(tsp_text(points))
    Path("x.vrp").write_text(vrp_text(points, [1] * N, 6))
    Path("x.sol").write_text("".join(f"Route #{i}: {i}\n" for i in range(1, N)))
    for name in ("mine", "tsp100"):
        np.savez(f"{name}.npz", coords=points[None] / 100.0)
    points = np.random.default_rng(1).integers(0, 100, (26, 2))  # Solomon's have 25 customers, or more
    rows = "".join(f"{i} {x} {y} {int(i > 0)} 0 1000 0\n" for i, (x, y) in enumerate(points))
    Path("R101.txt").write_text(f"R101\n\nVEHICLE\nNUMBER CAPACITY\n25 200\n\nCUSTOMER\n\n{rows}")
    return tmp_path


def test_the_page_of_published_weights_has_every_layout() -> None:
    page = (ROOT / "docs" / "how-to" / "published_weights.md").read_text()
    assert [each.name for each in layouts() if each.name.split()[0].strip(",") not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.slow
def test_its_commands_run(page: Path, folder: Path) -> None:
    typed = [line for line in lines(page) if line.startswith("neuroute ")]
    assert typed
    for line in typed:
        done(*shlex.split(line)[1:])
        for written in re.findall(r"--(?:out|save) (\S+)", line):
            assert (folder / written).is_file()


def test_its_python_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if "lkh" not in available("tsp"):
        pytest.skip("lkh is not installed")
    names: dict[str, object] = {}
    for code in blocks(PAGES[0], "python"):
        exec(compile(code, "own_data.md", "exec"), names)
    *_, solved, distances = capsys.readouterr().out.splitlines()
    assert distances.startswith("ATSP [0, ")
    insertion, better, gap = solved.split()
    assert float(better) <= float(insertion)
    assert gap == "None"
    assert (folder / "berlin52.tour").is_file()


def test_the_python_of_the_api_page_runs(folder: Path) -> None:
    code = blocks(ROOT / "docs" / "reference" / "python.md", "python")[0]  # before signatures
    exec(compile(code.replace("seconds=10", "seconds=1"), "python.md", "exec"), {})
    assert (folder / "berlin52.svg").is_file()


def test_the_example_of_needs_declares_a_table() -> None:
    """Of the module's docstring, which stands on the API page."""
    code = dedent("\n".join(re.findall(r"^    .*|^$", str(needs.__doc__), re.MULTILINE)))
    labels = Labels(dataset=Dataset(n=8, count=4), solver="lkh")
    names: dict[str, Any] = vars(needs) | {"Iterator": Iterator, "Study": Any, "Table": Any, "Scale": Any}
    names |= {"__name__": "tables", "toy_test_set": lambda scale: labels}
    exec(compile(code, "needs.py", "exec"), names)
    assert [need.labels for need in names["table3"].declaration.needs(None)] == [labels]


def test_every_page_with_python_is_run() -> None:
    """Here, by tests/examples and extras/compare/tests."""
    how_to = {f"docs/how-to/{name}.md" for name in ("own_data", "own_network", "own_problem", "module", "compare")}
    tutorials = {f"docs/tutorial/{name}.md" for name in ("add_a_network", "add_a_table")}
    assert {name_of(page) for page in EVERY_PAGE if blocks(page, "python")} == {"README.md", *how_to, *tutorials}


def shortened(code: str, *changes: tuple[str, str]) -> str:
    """Code of a page with less to do, and a reference that needs no solver."""
    for before, after in (('"lkh"', '"nearest"'), *changes):
        code = code.replace(before, after)
    return code


def test_searches_of_the_page_run(folder: Path) -> None:
    """Options that stand in a table, with models that take them."""
    text = PAGES[0].read_text()
    for option in ("--beam 8", "--rrc 100", "--prc 100", "--rescale 1.3"):
        assert f"`{option}`" in text
        done("solve", "berlin52.tsp", "--model", "tsp.safetensors", *option.split())


def test_the_python_of_readme_trains_and_solves(folder: Path) -> None:
    (text,) = blocks(ROOT / "README.md", "python")
    names: dict[str, Any] = {}
    exec(shortened(text, ("batches=200", SMALL), ("seconds=5", "seconds=1")), names)
    assert names["solution"].instance.n == N
    assert Path("berlin52.svg").exists()


@pytest.mark.slow
def test_the_python_of_own_networks_trains(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training, path, loss = blocks(PAGES[1], "python")
    names: dict[str, Any] = {}
    exec(shortened(training, ("batches=300", SMALL)), names)
    assert Path("mine.safetensors").exists()
    assert Path("work/python/runs/python/decoderonly_tsp20/log.csv").exists()
    (folder / "best_tour.py").write_text(loss)
    monkeypatch.syspath_prepend(folder)
    fewer = (("max_nodes=100", "max_nodes=52, seconds=0.2"), ("n=20", "n=8"), ("seeds=3", "seeds=2"))
    exec(shortened(path, ("batches=400", SMALL), *fewer), names | {"__name__": "__main__"})
    assert "mynet_tsp8" in Path("results/compare/table.md").read_text()
    assert Path("results/sweep/figure.svg").exists()
    more = eval(f"dict({SMALL})") | {"n": 6, "arguments": SHAPE, "how": importlib.import_module("best_tour").BestTour}
    assert names["neuroute"].train("neuroute.networks.pomo:Pomo", **more).net.train_nodes == 6


def test_the_snakefile_of_the_page_plans_what_it_asks_for(tmp_path: Path) -> None:
    (tmp_path / "neuroute").symlink_to(ROOT)
    for file, language in (("Snakefile", "python"), ("config.yaml", "yaml")):
        (tmp_path / file).write_text(blocks(ROOT / "docs" / "how-to" / "module.md", language)[0])
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    environment.pop("NEUROUTE_CONFIG", None)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--dry-run"]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    said = run.stdout + run.stderr
    assert "\nmine " in said
    assert "routing_train" in said
    assert "results/pens/table2.csv" in said
    assert "results/pens/table3.csv" not in said
