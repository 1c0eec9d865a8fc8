"""The wheel: it holds what an empty folder needs, from `neuroute solve` to a workflow of one's own."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from commands import done, refused

from neuroute.pipeline.cli import setup

ROOT = Path(__file__).resolve().parents[1]
FILE = """NAME: a
TYPE: TSP
DIMENSION: 5
EDGE_WEIGHT_TYPE: EUC_2D
NODE_COORD_SECTION
1 0 0
2 0 9
3 9 9
4 9 0
5 4 1
EOF
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheels of this repository, and with the packages that these tests run with."""
    folder = tmp_path_factory.mktemp("wheel")
    pip, source = [sys.executable, "-m", "pip"], folder / "source"
    others = shutil.ignore_patterns(".*", "work", "results", "build", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, source, ignore=others)  # a build leaves files behind
    done = subprocess.run(
        [
            *pip,
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            folder,
            source,
            *(source / "extras" / name for name in ("compare", "systems")),
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode and "setuptools" in done.stderr:
        pytest.skip("pip cannot fetch setuptools, which builds the wheel")
    assert done.returncode == 0, done.stderr
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.check_output([python, "-c", query], text=True).strip())
    (site / "shared.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    wheels = folder.glob("*.whl")
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--target", site, *wheels], check=True)
    return python


def run(python: Path, folder: Path, *arguments: object) -> str:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "NEUROUTE_CONFIG")}
    done = subprocess.run(
        [python, *map(str, arguments)],
        cwd=folder,
        env=environment | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.mark.slow
def test_an_empty_folder_is_enough(python: Path, tmp_path: Path) -> None:
    cli = ("-m", "neuroute")
    where = run(python, tmp_path, "-c", "import neuroute; print(neuroute.__file__)")
    assert str(python.parents[1]) in where
    of_systems = "from neuroute.core.dotted import roots; print(roots())"
    assert str(python.parents[1]) in run(python, tmp_path, "-c", of_systems)
    script = "import neuroute; i = neuroute.generate('tsp', 10)[0]; print(neuroute.solve(i, 'nearest'))"
    assert "length" in run(python, tmp_path, "-c", script)
    training = "neuroute.train('neuroute.networks.pomo:Pomo', n=8, batches=1, validate_on=2, workers=1)"
    saving = f"model = {training}; model.save('mine.safetensors'); print(model)"
    assert "python/pomo_tsp8" in run(python, tmp_path, "-c", f"import neuroute; {saving}")
    assert "TSP" in run(python, tmp_path, *cli, "models")
    (tmp_path / "a.tsp").write_text(FILE)
    assert "a: n=5, length " in run(python, tmp_path, *cli, "solve", "a.tsp", "--seconds", "0.1", "--out", "a.svg")
    assert (tmp_path / "a.svg").is_file()
    (tmp_path / "a.tour").write_text("TYPE: TOUR\nTOUR_SECTION\n1\n2\n3\n4\n5\n-1\nEOF\n")
    methods = "nearest,mine=neuroute.networks.pomo:Pomo=mine.safetensors"
    options = ("--set", "a.tsp", "--method", methods, "--seconds", "0.1", "--out", "compared")
    run(python, tmp_path, *cli, "compare", *options)
    assert "mine" in (tmp_path / "compared" / "table.csv").read_text()


@pytest.mark.slow
@pytest.mark.dag
def test_it_brings_the_workflow_of_the_tutorial(python: Path, tmp_path: Path) -> None:
    """`docs/tutorial/add_a_network.md`, typed as it stands there."""
    assert "next: neuroute plan" in run(python, tmp_path, "-m", "neuroute", "init", "mine")
    here = tmp_path / "mine"
    for name in ("Snakefile", "config.yaml", "environment.yml", "workflow/rules/labels.smk", "docs/examples/swiglu.py"):
        assert (here / name).read_text() == (ROOT / name).read_text()
    page = (ROOT / "docs" / "tutorial" / "add_a_network.md").read_text()
    for name, language in (("swiglu.py", "python"), ("mine.yaml", "yaml")):
        (here / name).write_text(re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)[0])
    (here / "ten.tsp").write_text(FILE)
    (commands,) = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    lines = [shlex.split(line, comments=True) for line in commands.splitlines()]
    assert [words[0] for words in lines] == ["neuroute", "snakemake", "cat", "neuroute", "neuroute"]
    planned, _, solved, compared = [run(python, here, "-m", *words) for words in lines if words[0] != "cat"]
    assert "train" in planned
    assert "D=2, W=32" in (here / "results" / "toy" / "table1.md").read_text()
    assert "a: n=5, length " in solved
    assert "* mine, greedy" in compared or "* mine " in compared
    typed = ("-n", "--resources", "gpu=1", "--configfile", "mine.yaml", "results/toy/table1.csv")
    assert "Nothing to be done" in run(python, here, "-m", "snakemake", *typed)


def test_a_workspace_is_whole_and_overwrites_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "packed"
    (packed / "workflow").mkdir(parents=True)
    (packed / "workflow" / "x.smk").write_text("x")
    (packed / "Snakefile").write_text("y")
    monkeypatch.setattr(setup, "PACKED", packed)
    done("init", tmp_path / "b")
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["Snakefile", "workflow"]
    assert (tmp_path / "b" / "workflow" / "x.smk").read_text() == "x"
    (tmp_path / "b" / "Snakefile").write_text("mine")
    assert "Snakefile: exists; name another folder" in refused("init", tmp_path / "b")
    assert (tmp_path / "b" / "Snakefile").read_text() == "mine"
    assert "cannot be written" in refused("init", packed / "Snakefile" / "c")


@pytest.mark.slow
def test_a_paper_of_ones_own_begins_with_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done("init", tmp_path / "w", "--paper", "my_net2")
    here = tmp_path / "w"
    assert {"README.md", ".gitignore", "Snakefile", "my_net2.py", "test_my_net2.py", "my_net2.yaml", "papers"} <= {
        path.name for path in here.iterdir()
    }
    written = [here / "README.md", *here.glob("*my_net2*.*"), *(here / "papers" / "my_net2").iterdir()]
    assert not [path for path in written if re.search(r"\btoy\b|Toy", path.read_text())]
    monkeypatch.chdir(here)
    planned = done("plan", "--all")
    for name in ("my_net2/decoder", "table1", "figure1"):
        assert name in planned
    subprocess.run([sys.executable, "-m", "snakemake", "-n", "--config", "results_dir=./res/"], cwd=here, check=True)
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "0", "test_my_net2.py"], cwd=here, check=True)
    for name, why in {
        "sit": "of this name exists",
        "json": "of this name exists",
        "My Net": "lower-case letters",
    }.items():
        assert why in refused("init", tmp_path / "x", "--paper", name)
    assert not (tmp_path / "x").exists()
