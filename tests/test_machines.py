"""What neuroute installs on: the check that `make env` begins with, and that pins and pages agree with it."""

import re
import subprocess
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def machine(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("workflow/machine.py")


SERVED = [
    ((3, minor), where, "")
    for minor in (11, 12, 13)
    for where in (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"))
]


@pytest.mark.parametrize(
    ("python", "where", "says"),
    [
        *SERVED,
        ((3, 10), ("linux", "x86_64"), "3.11, 3.12 or 3.13 is needed, this is 3.10; run: make PYTHON="),
        ((3, 14), ("linux", "x86_64"), "this is 3.14"),
        ((3, 12), ("darwin", "x86_64"), "this is darwin on x86_64"),
        ((3, 12), ("win32", "AMD64"), "this is win32 on AMD64"),
    ],
)
def test_what_does_not_serve_gets_one_clear_line(
    machine: ModuleType, python: tuple[int, int], where: tuple[str, str], says: str
) -> None:
    line = machine.fault(python, *where)
    assert says in line
    assert bool(line) == bool(says)
    assert "\n" not in line


def test_make_env_stops_with_that_line_before_it_makes_anything(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\necho 'error: Python 3.11, 3.12 or 3.13 is needed' >&2; exit 1\n")
    old.chmod(0o755)
    venv = tmp_path / "venv"
    done = subprocess.run(
        ["make", "env", f"PYTHON={old}", f"VENV={venv}"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert done.stderr.startswith("error: Python 3.11, 3.12 or 3.13 is needed\n")
    assert not venv.exists()


def test_metadata_and_check_name_the_same_pythons(machine: ModuleType) -> None:
    (low, high) = (tuple(map(int, v.split("."))) for v in re.findall(r"\d+\.\d+", PROJECT["requires-python"]))
    assert tuple((3, minor) for minor in range(low[1], high[1])) == machine.PYTHONS


def test_the_base_needs_no_package_whose_pins_hold_others_back() -> None:
    assert not [need for need in PROJECT["dependencies"] if need.startswith("lkh")]
    assert int(PINS["networkx"].split(".")[0]) >= 3
    assert int(PINS["click"].split(".")[0]) >= 8  # `lkh` would pin it below 7


def canonical(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def pins_in(text: str) -> dict[str, str]:
    return {canonical(name): pin for name, pin in re.findall(r"([\w.-]+)==([\w.]+)", text)}


PINS = pins_in((ROOT / "constraints.txt").read_text())
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def test_every_file_names_the_pins(script: Callable[[str], ModuleType]) -> None:
    places = {
        "environment.yml": (ROOT / "environment.yml").read_text(),
        "pyproject.toml": str(PYPROJECT["dependency-groups"]["solvers"]),
        "repack.py": script("workflow/concorde/repack.py").PUBLISHED,
    }
    for place, text in places.items():
        named = pins_in(text)
        assert named, place
        assert named.items() <= PINS.items(), place


def test_locks_are_of_the_pins_and_have_a_hash_of_every_file() -> None:
    """Else: `make lock`."""
    packages = {each["name"]: each for each in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    assert {name: packages[name]["version"] for name in PINS} == PINS
    files = [file for each in packages.values() for file in (*each.get("wheels", ()), each.get("sdist"))]
    hashes = {file["hash"] for file in files if file}
    locked = [entry for entry in re.split(r"\n(?=\w)", (ROOT / "requirements.lock").read_text()) if "==" in entry]
    assert len(locked) > 100
    for entry in locked:
        ((name, pin),) = pins_in(entry.partition(" ")[0]).items()
        assert packages[name]["version"] == pin
        given = set(re.findall(r"--hash=(sha256:\w{64})", entry))
        assert given, name
        assert given <= hashes
    of_others = {f"snakemake-executor-plugin-{name}" for name in ("slurm", "slurm-jobstep")}  # SLURM, storage
    of_others |= {f"snakemake-storage-plugin-{name}" for name in ("fs", "s3")}
    of_others |= {"boto3", "botocore", "jmespath", "reretry", "s3transfer", "sysrsync", "toml"}
    assert PINS.keys() - pins_in("\n".join(locked)).keys() == of_others


def test_the_lock_is_of_the_dependencies_that_the_project_has() -> None:
    """Else: `make lock`."""
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    (metadata,) = [each["metadata"] for each in packages if each["name"] == "neuroute"]
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *(each for needs in extras.values() for each in needs)]
    assert sorted(canonical(re.match(r"[\w.-]+", each)[0]) for each in wanted) == sorted(  # type: ignore[index]
        each["name"] for each in metadata["requires-dist"]
    )
    assert set(metadata["provides-extras"]) == set(extras)


def test_concordes_wheel_is_packed_again_without_dependencies(
    script: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repack = script("workflow/concorde/repack.py")
    about = "ml4co_kit-0.5.7.dist-info"
    text = b"Name: ml4co_kit\nVersion: 0.5.7\nRequires-Dist: pyvrp<=0.13.4\n\nRequires care.\n"
    files = {
        "ml4co_kit/extension.so": bytes(range(256)),
        f"{about}/METADATA": text,
        f"{about}/RECORD": f"ml4co_kit/extension.so,sha256=a,256\n{about}/METADATA,sha256=b,9\n".encode(),
    }

    def download(command: list[str], check: bool) -> None:
        with zipfile.ZipFile(Path(command[command.index("--dest") + 1], "a.whl"), "w") as wheel:
            for name, content in files.items():
                wheel.writestr(name, content)

    monkeypatch.setattr(repack.subprocess, "run", download)
    with zipfile.ZipFile(tmp_path / repack.build_wheel(str(tmp_path))) as wheel:
        packed = {name: wheel.read(name) for name in wheel.namelist()}
    assert packed["ml4co_kit/extension.so"] == files["ml4co_kit/extension.so"]
    assert packed[f"{about}/METADATA"] == text.replace(b"Requires-Dist: pyvrp<=0.13.4\n", b"")
    assert packed[f"{about}/RECORD"] == f"ml4co_kit/extension.so,sha256=a,256\n{about}/METADATA,,\n".encode()
