"""Files in a storage: no job sees a folder of another one, and what it reads and writes is what its rule names."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from checkout import ROOT, TOY, TRAINED, Snakemake, toy

PAGE = ROOT / "docs/how-to/storage.md"
pytestmark = [pytest.mark.slow, pytest.mark.dag]
Fetch = Callable[[str], bytes]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Of the toy paper's model, trained without a storage."""
    folder = tmp_path_factory.mktemp("local")
    toy(folder)(*TOY, "--", TRAINED)
    return (folder / TRAINED).read_bytes()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an S3 on this machine, with a bucket `store`."""
    pytest.importorskip("snakemake_storage_plugin_s3")
    pytest.importorskip("moto.server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        for _ in range(600):
            try:
                urllib.request.urlopen(urllib.request.Request(f"{address}/store", method="PUT"), timeout=60)
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        yield address
        process.kill()


def write_profile(folder: Path, provider: str, **names: object) -> list[str]:
    """Write a profile as the page has it, with other places; options that take it."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (text,) = [block for block in blocks if f"provider: {provider}\n" in block]
    for name, value in names.items():
        text = text.replace(name, str(value))
    file = folder / "storage" / "profile.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return ["--profile", "storage", *TOY]


def make_elsewhere(folder: Path, run: Snakemake, command: list[str], fetch: Fetch, weights: bytes) -> None:
    """Make labels, and all else where nothing is left of that job but the storage."""
    run(*command, "--until", "labels", "--", "all")
    shutil.rmtree(folder / "work")
    shutil.rmtree(folder / "copies", ignore_errors=True)
    run(*command, "--", "all")
    assert fetch(TRAINED) == weights
    assert fetch("results/toy/table1.csv").startswith(b"method,")
    assert not list((folder / "results").glob("*"))
    assert not list((folder / "work").rglob("*.safetensors"))
    assert "Nothing to be done" in run(*command, "-n", "--", "all").stdout


def test_a_folder(tmp_path: Path, weights: bytes) -> None:
    pytest.importorskip("snakemake_storage_plugin_fs")
    if shutil.which("rsync") is None:
        pytest.skip("the plugin fs needs rsync")
    run, store = toy(tmp_path), tmp_path / "store"
    command = write_profile(tmp_path, "fs", **{"/data/store": store})
    make_elsewhere(tmp_path, run, command, lambda file: (store / file).read_bytes(), weights)
    shutil.rmtree(store)
    store.write_text("no folder")
    done = run(*command, check=False)
    assert done.returncode == 1
    (line,) = [line for line in (done.stdout + done.stderr).splitlines() if f"{store}" in line]
    assert line.startswith(f"--default-storage-prefix {store}: the storage gives no answer ({store}/")
    assert "Traceback" not in done.stderr


def test_an_executor_without_a_shared_folder(tmp_path: Path, weights: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job has an empty folder, into which Snakemake brings Snakefiles and config, and the storage all else."""
    pytest.importorskip("snakemake_storage_plugin_fs")
    if shutil.which("rsync") is None:
        pytest.skip("the plugin fs needs rsync")
    (tmp_path / "jobs").mkdir()
    monkeypatch.setenv("ELSEWHERE", str(tmp_path / "jobs"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "elsewhere"), prepend=os.pathsep)
    (tmp_path / "checkout").mkdir()
    run = toy(tmp_path / "checkout")
    config = tmp_path / "checkout/docs/examples/config.yaml"
    config.write_text(config.read_text().replace("docs/examples", f"{tmp_path}/checkout/docs/examples"))
    store = ("--default-storage-provider", "fs", "--default-storage-prefix", str(tmp_path / "store"))
    run("--executor", "elsewhere", "--jobs", "2", "--configfile", str(config), *store, "--", "results/toy/table1.csv")
    assert (tmp_path / "store" / TRAINED).read_bytes() == weights
    assert (tmp_path / "store/results/toy/table1.csv").read_text().startswith("method,")
    assert len(list((tmp_path / "jobs").glob("*/log"))) == 6  # labels, training, test: drawings are made here


def test_s3(tmp_path: Path, server: str, weights: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACCESS", "SECRET"):
        monkeypatch.setenv(f"SNAKEMAKE_STORAGE_S3_{name}_KEY", "any")
    run = toy(tmp_path)
    command = write_profile(tmp_path, "s3", **{"https://s3.example.org": server, "s3://bucket": "s3://store"})

    boto3 = pytest.importorskip("boto3")
    store = boto3.client("s3", endpoint_url=server, aws_access_key_id="any", aws_secret_access_key="any")

    def fetch(file: str) -> bytes:
        return bytes(store.get_object(Bucket="store", Key=file)["Body"].read())

    make_elsewhere(tmp_path, run, command, fetch, weights)
    for place, address, words in (
        ("s3://elsewhere", server, "no such bucket"),
        ("s3://store", "http://127.0.0.1:1", "the storage gives no answer"),
    ):
        command = write_profile(tmp_path, "s3", **{"https://s3.example.org": address, "s3://bucket": place})
        done = run(*command, check=False)
        assert done.returncode == 1
        (line,) = [line for line in (done.stdout + done.stderr).splitlines() if words in line]
        assert line.startswith(f"--default-storage-prefix {place}: ")
        assert "Traceback" not in done.stderr
