"""TSPLIB and CVRPLIB as benchmarks: which instances, is a file what it says, and fetching that keeps nothing wrong."""

import csv
import gzip
import http.server
import json
import shutil
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from untrained import tsp_text

from neuroute.core.errors import NeurouteError
from neuroute.datasets import fetch
from neuroute.datasets.benchmarks import (
    BENCHMARKS,
    PACKAGED,
    library,
    optimum_of,
    packaged_files,
    place_of,
    published_instances,
    read_known,
    read_manifest,
    study_instances,
    survey,
    write_manifest,
)
from neuroute.problems.instances.distances import all_distances
from neuroute.problems.instances.tsplib import read_solution
from neuroute.solvers.matrix import SOLVERS

SOME = ("eil51", "berlin52", "st70")


@pytest.fixture(scope="session")
def tsplib(public: Callable[[str], Path]) -> Path:
    return public("benchmarks/tsplib")


@pytest.fixture(scope="session")
def cvrplib(public: Callable[[str], Path]) -> Path:
    """The folder above its three sets."""
    return public("benchmarks/cvrplib_x").parent


@pytest.fixture
def copy(tmp_path: Path, tsplib: Path) -> Path:
    """A folder with three of the instances."""
    (tmp_path / "copy").mkdir()
    for name in SOME:
        shutil.copy(tsplib / f"{name}.tsp", tmp_path / "copy" / f"{name}.tsp")
        (tmp_path / "copy" / f"{name}.tsp").chmod(0o644)
    return tmp_path / "copy"


def test_the_papers_instances_are_70_below_5000_nodes() -> None:
    chosen = study_instances()
    assert len(chosen) == 70
    assert sum(k.nodes < 500 for k in chosen) == 42
    assert sum(k.nodes > 500 for k in chosen) == 28
    assert {k.edge_type for k in chosen} == {"EUC_2D"}
    assert [k.name for k in study_instances(100)] == ["eil51", "berlin52", "st70", "eil76", "pr76", "rat99"]
    assert published_instances()["berlin52"].optimum == 7542


def test_the_shared_copy_is_whole_and_what_it_says(tsplib: Path) -> None:
    assert len(published_instances()) == 81
    assert survey(tsplib) == {}


def test_line_endings_headers_and_spellings_do_not_matter(copy: Path) -> None:
    path = copy / "berlin52.tsp"
    text = path.read_text().replace("565.0 575.0", "5.65e2 575").replace("NAME:", "COMMENT : of mine\r\nNAME:")
    assert "5.65e2" in text
    path.write_bytes(text.replace("\n", "\r\n").encode())
    assert len(read_known(copy, "berlin52").coords) == 52


def test_missing_altered_and_strange_files_are_one_line_each(copy: Path) -> None:
    (copy / "berlin52.tsp").write_text((copy / "berlin52.tsp").read_text().replace("565.0 575.0", "566.0 575.0"))
    (copy / "st70.tsp").write_text((copy / "st70.tsp").read_text().replace("EUC_2D", "MAN_2D"))
    missing = survey(copy)
    assert set(missing) == set(published_instances()) - {"eil51"}
    assert "berlin52.tsp: not TSPLIB's berlin52 (52 nodes, EUC_2D)" in missing["berlin52"]
    assert "EDGE_WEIGHT_TYPE MAN_2D is not read" in missing["st70"]
    assert "no such file; `neuroute fetch tsplib` gets it" in missing["pr76"]
    assert not any("\n" in why for why in missing.values())


# -- CVRPLIB --------------------------------------------------------------------------------------------------


def test_the_shared_copy_of_cvrplib_has_a_folder_for_each_set(cvrplib: Path, tmp_path: Path) -> None:
    sets = [k.set for k in published_instances("cvrplib").values()]
    assert {name: sets.count(name) for name in set(sets)} == {"X": 100, "Arnold": 10, "Li": 12}
    assert set(published_instances("cvrplib")) - set(survey(cvrplib / "cvrplib_li", "cvrplib")) == {
        f"Li_{i}" for i in range(21, 33)
    }
    (tmp_path / "cvrplib").symlink_to(cvrplib / "cvrplib_li")
    assert len(survey(tmp_path, "cvrplib")) == 110


@pytest.mark.slow
def test_the_shared_copy_of_cvrplib_is_whole_and_what_it_says(cvrplib: Path) -> None:
    """Best costs are those of the solutions that are there."""
    assert survey(cvrplib, "cvrplib") == {}
    for name, about in published_instances("cvrplib").items():
        instance = read_known(cvrplib, name, "cvrplib")
        assert len(instance.coords) == about.nodes
        path = next(cvrplib.glob(f"cvrplib_*/{name}.sol"), None)
        if about.set == "Li":
            assert path is None
        else:
            assert path is not None
            routes, stated = read_solution(path)
            instance.check(routes, name)
            assert instance.cost(routes) == stated == about.optimum, name
        if about.nodes < 200:
            assert optimum_of(instance, "cvrplib") == about.optimum


def test_large_scale_studies_take_the_instances_of_sit(public: Callable[[str], Path]) -> None:
    tsp, cvrp = study_instances(100_000, 1000), study_instances(100_000, 1001, "cvrplib")
    assert [sum(k.nodes <= 5000 for k in tsp), len(tsp)] == [23, 33]  # Table 2: 23 to 5K nodes, 10 above
    assert [sum(k.nodes - 1 <= 7000 for k in cvrp), len(cvrp)] == [8, 14]  # 8 to 7K customers, 6 above
    assert max(k.nodes for k in tsp) == 85_900
    assert study_instances(100_000, 1000, "cvrplib") == cvrp
    with public("benchmarks/groups.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {k.name for k in tsp} == {r["name"] for r in rows if r["group"] == "SIT_TSPLIB_33"}
    assert {k.name for k in cvrp} == {r["name"] for r in rows if r["group"] == "SIT_CVRPLIB_14"}
    pens = {r["name"] for r in rows if r["group"] == "PENS_TSPLIB_72"}
    assert {k.name for k in study_instances(10_001)} == pens


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_packages_instances_are_the_published_ones(benchmark: str, tmp_path: Path) -> None:
    names = packaged_files(benchmark)
    assert len(names) >= 4
    for name in names:
        assert len(read_known(PACKAGED, name, benchmark).coords) == published_instances(benchmark)[name].nodes
        assert place_of(None, name, benchmark) == place_of(tmp_path, name, benchmark) == PACKAGED
    lacking = next(name for name in published_instances(benchmark) if name not in names)
    assert place_of(tmp_path, lacking, benchmark) is None
    copies = tmp_path / library(benchmark).folders[0]
    copies.mkdir()
    path = shutil.copy(names[name], copies)
    assert place_of(tmp_path, name, benchmark) == tmp_path  # the user's copy goes first
    assert survey(tmp_path, benchmark).keys() == published_instances(benchmark).keys() - {name}
    assert Path(path).read_bytes() == names[name].read_bytes()


# -- fetching, from a server of our own -----------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def server(home: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(home))) as own:
        threading.Thread(target=own.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{own.server_port}"
        own.shutdown()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Without a network: what was asked for all the same."""
    urls = list[str]()

    def no_network(url: str, timeout: float) -> None:
        urls.append(url)
        raise OSError("Name or service not known")

    monkeypatch.setattr("urllib.request.urlopen", no_network)
    return urls


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    make_few(monkeypatch, "tsplib", SOME)


def make_few(monkeypatch: pytest.MonkeyPatch, benchmark: str, names: tuple[str, ...]) -> None:
    """Have a library of three instances, none of which comes with the package, so that a test fetches no more."""
    only = {name: published_instances(benchmark)[name] for name in names}
    monkeypatch.setattr(fetch, "packaged_files", lambda benchmark: {})
    for module in ("benchmarks", "fetch"):
        monkeypatch.setattr(f"neuroute.datasets.{module}.published_instances", lambda benchmark="tsplib": only)


def zipped(copy: Path, name: str) -> bytes:
    return gzip.compress((copy / f"{name}.tsp").read_bytes())


def test_fetches_file_by_file_and_only_what_is_missing(
    copy: Path, home: Path, server: str, few: None, tmp_path: Path
) -> None:
    for name in SOME:
        (home / f"{name}.tsp.gz").write_bytes(zipped(copy, name))
    folder = tmp_path / "got"
    assert fetch.fetch("tsplib", folder, server).missing == {}
    assert survey(folder) == {}
    (home / "st70.tsp.gz").unlink()  # an intact file is not asked for again; a damaged one is
    assert fetch.fetch("tsplib", folder, server).missing == {}
    (folder / "eil51.tsp").write_text("rubbish")
    assert fetch.fetch("tsplib", folder, server).missing == {}
    assert sorted(p.name for p in folder.iterdir()) == sorted(f"{n}.tsp" for n in SOME)


def test_files_without_a_digest_are_checked_by_nodes_and_edge_type(home: Path, server: str, tmp_path: Path) -> None:
    for name, nodes in (("wi29", 29), ("dj38", 37)):
        (home / f"{name}.tsp").write_text(tsp_text([(i, i % 7) for i in range(nodes)], name=name))
    here = fetch.fetch("national", tmp_path / "got", server)
    assert here.missing.keys() == published_instances("national").keys() - {"wi29"}
    assert "not the National TSPs's dj38 (38 nodes, EUC_2D): 37 nodes" in here.missing["dj38"]
    (home / "wi29.tsp").unlink()  # what is there is not asked for again
    assert "wi29" not in fetch.fetch("national", tmp_path / "got", server).missing


@pytest.mark.parametrize(("name", "logged"), [("C1k.0", 14802408), ("C1k.9", 14161183), ("C3k.1", 25389612)])
def test_clustered_instances_are_made_from_their_names(name: str, logged: int, tmp_path: Path) -> None:
    """The survey's logs state the lengths of nearest-neighbour tours of the originals."""
    assert place_of(tmp_path, name, "dimacs") == PACKAGED
    instance = read_known(tmp_path, name, "dimacs")
    assert instance.length(SOLVERS["nearest"].tour(all_distances(instance.coords, "EUC_2D"), 0, None)) == logged


def test_corrupted_downloads_are_not_kept(copy: Path, home: Path, server: str, few: None, tmp_path: Path) -> None:
    other = (copy / "eil51.tsp").read_bytes().replace(b"1 37 52", b"1 37 53")
    assert other != (copy / "eil51.tsp").read_bytes()
    (home / "eil51.tsp.gz").write_bytes(gzip.compress(other))
    (home / "berlin52.tsp.gz").write_bytes(zipped(copy, "berlin52")[:-40])  # cut short
    (home / "st70.tsp.gz").write_bytes(gzip.compress(b"\xff"))
    folder = tmp_path / "got"
    missing = fetch.fetch("tsplib", folder, server).missing
    assert set(missing) == set(SOME)
    assert "not TSPLIB's eil51" in missing["eil51"]
    assert "not a whole gzip file" in missing["berlin52"]
    assert "not a text file" in missing["st70"]
    assert not folder.exists()


def test_offline_is_said_and_is_no_error(
    asked: list[str], few: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = tmp_path / "work" / "tsplib.json"
    fetch.provide("tsplib", manifest, tmp_path / "work" / "tsplib", None)
    assert read_manifest(manifest) == (tmp_path / "work" / "tsplib", [])
    written = json.loads(manifest.read_text())
    assert written["available"] == []
    assert all("no connection" in why for why in written["missing"].values())
    assert len(asked) == 1  # not for the other files
    assert "3 TSPLIB files are missing" in caplog.text


def test_what_a_network_was_missing_for_is_fetched_by_the_next_run_that_has_one(
    copy: Path, home: Path, server: str, few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, real = tmp_path / "work" / "tsplib.json", urllib.request.urlopen
    asked, network = list[str](), threading.Event()

    def ask(url: str, timeout: float) -> object:
        asked.append(url)
        if network.is_set():
            return real(url.replace(library("tsplib").home, server), timeout=timeout)
        raise OSError("Name or service not known")

    def again() -> tuple[int, int, bool]:
        """How many came, after how many requests, and whether the manifest is another one."""
        before = manifest.stat().st_mtime_ns
        asked.clear()
        came = fetch.fetch_again({"tsplib": manifest})
        return came, len(asked), manifest.stat().st_mtime_ns != before

    monkeypatch.setattr("urllib.request.urlopen", ask)
    fetch.provide("tsplib", manifest, tmp_path / "work" / "tsplib", None)
    assert again() == (0, 1, False)  # still no network: one look
    network.set()
    (home / "eil51.tsp.gz").write_bytes(zipped(copy, "eil51"))
    came, _, is_another = again()
    assert (came, is_another) == (1, True)
    assert read_manifest(manifest)[1] == ["eil51"]
    kept = (tmp_path / "work" / "tsplib" / "eil51.tsp").stat().st_mtime_ns
    (home / "st70.tsp.gz").write_bytes(zipped(copy, "st70"))
    assert again() == (0, 0, False)  # the server has no others: a network does not help
    assert (tmp_path / "work" / "tsplib" / "eil51.tsp").stat().st_mtime_ns == kept


def test_a_network_that_never_answers_holds_no_run_up(
    asked: list[str], few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = threading.Event()

    def wait(url: str, timeout: float) -> None:  # as a look-up of names may, whatever the time limit is
        silent.wait(60)
        raise OSError("timed out")

    manifests = {name: tmp_path / f"{name}.json" for name in ("tsplib", "cvrplib")}
    for name, manifest in manifests.items():
        fetch.provide(name, manifest, tmp_path / name, None)
    monkeypatch.setattr("urllib.request.urlopen", wait)
    monkeypatch.setattr(fetch, "PATIENCE", 0.1)
    begun = time.monotonic()
    assert fetch.fetch_again(manifests) == 0
    assert time.monotonic() - begun < 30
    silent.set()


def test_a_copy_of_the_users_own_is_used_in_place(
    copy: Path, few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("nothing is to be downloaded"))
    (copy / "st70.tsp").unlink()
    fetch.provide("tsplib", tmp_path / "m.json", tmp_path / "unused", copy)
    assert read_manifest(tmp_path / "m.json") == (copy, ["eil51", "berlin52"])
    (tmp_path / "empty").mkdir()
    fetch.provide("tsplib", tmp_path / "m.json", tmp_path / "unused", tmp_path / "empty")
    assert read_manifest(tmp_path / "m.json") == (tmp_path / "empty", [])
    with pytest.raises(NeurouteError, match="correct `benchmarks_dir`"):
        fetch.provide("tsplib", tmp_path / "m.json", tmp_path / "unused", tmp_path / "absent")


def test_cvrplib_comes_from_a_folder_for_each_set(
    cvrplib: Path, home: Path, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("X-n101-k25", "Leuven1", "Li_21")
    make_few(monkeypatch, "cvrplib", names)
    for name, folder, source in zip(names, ("X", "Arnold", "Li"), ("x", "xxl", "li"), strict=True):
        (home / folder).mkdir()
        shutil.copy(cvrplib / f"cvrplib_{source}" / f"{name}.vrp", home / folder / f"{name}.vrp")
    (home / "Arnold" / "Leuven1.vrp").chmod(0o644)
    (home / "Arnold" / "Leuven1.vrp").write_text("<html>moved</html>")
    folder = tmp_path / "got"
    missing = fetch.fetch("cvrplib", folder, server).missing
    assert set(missing) == {"Leuven1"}
    assert "the downloaded Leuven1.vrp, line 1: " in missing["Leuven1"]
    assert sorted(p.name for p in folder.iterdir()) == ["Li_21.vrp", "X-n101-k25.vrp"]
    write_manifest(tmp_path / "m.json", folder, missing, "cvrplib")
    assert read_manifest(tmp_path / "m.json", "cvrplib") == (folder, ["X-n101-k25", "Li_21"])
