"""Comparisons that run: kept answers, sets and methods by name, bad input refused first, a process that is killed."""

import json
import subprocess
import sys
import urllib.error
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import call
from untrained import untrained

import neuroute
from compared import members, method, records, tsp_file
from neuroute.core.digest import code_digest, reach
from neuroute.core.dotted import resolve, search_working_folder
from neuroute.core.errors import NeurouteError
from neuroute.core.limited import Process
from neuroute.problems.instances.instance import Instance
from neuroute.specs.objects import Network
from neuroute_compare import worker
from neuroute_compare.methods import Method, parse
from neuroute_compare.run import run, tasks
from neuroute_compare.sets import collect
from neuroute_compare.settings import Compare
from neuroute_compare.summary import table
from neuroute_compare.worker import Answer, Machine, Worker

ROOT = Path(__file__).resolve().parents[3]
METHODS = [method("nearest", draws=False), method("lkh", 1.0), method("net", kind="network", draws=False)]


class Killed(Exception):
    """What ends a comparison in the middle."""


class Pretended:
    """Answers by rule, and counts them; dies after so many."""

    def __init__(self, last: int = 10**9) -> None:
        self.asked, self.last = 0, last

    def __call__(self, chosen: Method, instance: Instance, seed: int, limit: float) -> Answer:
        if self.asked == self.last:
            raise Killed
        self.asked += 1
        return Answer(100 + instance.n + seed + len(chosen.name), 0.5, 0.4, 2.0)


def test_a_killed_comparison_goes_on_to_the_same_records(tmp_path: Path) -> None:
    whole = run(members(), METHODS, [], tmp_path / "whole", seeds=2, solve=Pretended())
    with pytest.raises(Killed):
        run(members(), METHODS, [], tmp_path / "parts", seeds=2, solve=Pretended(last=9))
    left = sorted((tmp_path / "parts" / "answers").iterdir())
    assert len(left) == 9
    left[0].write_text('{"cost": 1')  # cut short by other hands
    rest = Pretended()
    resumed = run(members(), METHODS, [], tmp_path / "parts", seeds=2, solve=rest)
    assert rest.asked == 6 * 4 - 8
    assert resumed.equals(whole)
    again = Pretended(last=0)
    assert run(members(), METHODS, [], tmp_path / "parts", seeds=2, solve=again).equals(whole)


def test_an_edited_answer_is_named(tmp_path: Path) -> None:
    run(members()[:1], METHODS[:1], [], tmp_path, solve=Pretended())
    (kept,) = (tmp_path / "answers").iterdir()
    answer = json.loads(kept.read_text())
    kept.write_text(json.dumps(answer | {"cost": -5}))
    with pytest.raises(NeurouteError, match=f"{kept.name}: was changed since it was measured"):
        run(members()[:1], METHODS[:1], [], tmp_path, solve=Pretended(last=0))


def test_another_budget_limit_or_clock_is_another_answer(tmp_path: Path) -> None:
    first = Pretended()
    run(members()[:1], METHODS[1:2], [], tmp_path, solve=first)
    for more in ({"limit": 5.0}, {"machine": Machine(clock="cpu")}):
        run(members()[:1], METHODS[1:2], [], tmp_path, solve=first, **more)  # type: ignore[arg-type]
    run(members()[:1], [method("lkh", 2.0)], [], tmp_path, solve=first)
    assert first.asked == 4


def test_methods_take_turns_and_those_that_draw_nothing_come_once() -> None:
    order = [(t.member.name, t.method.name, t.seed) for t in tasks(members()[:2], METHODS, 2)]
    assert order[:4] == [("m6", "nearest", 0), ("m6", "lkh", 0), ("m6", "net", 0), ("m6", "lkh", 1)]
    assert len(order) == 8


def test_files_of_ones_own_are_a_set(tmp_path: Path) -> None:
    for n in (9, 12):
        tsp_file(tmp_path / f"own{n}.tsp", n, seed=n)
    found, _ = collect([str(tmp_path)], 0, 10, lambda name: tmp_path)
    assert [(m.name, m.n) for m in found] == [("own9", 9)]
    assert found[0].instance.gap(list(range(9))) == 0  # of the tour beside it
    (tmp_path / "own9.tour").unlink()
    with pytest.raises(NeurouteError, match="no best cost of own9 is known.*tour or length"):
        collect([str(tmp_path)], 0, 10, lambda name: tmp_path)


def test_a_copy_by_hand_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    folder = tmp_path / "national"
    folder.mkdir()
    tsp_file(folder / "wi29.tsp", 29)
    found, notes = collect(["national"], 0, 200, lambda name: tmp_path)
    assert [(m.name, m.best_known) for m in found] == [("wi29", 27603)]
    assert notes == ["Of national 1 of 3 instances of 0 to 200 nodes are there; not dj38, qa194."]
    tsp_file(folder / "dj38.tsp", 37)
    with pytest.raises(NeurouteError, match=r"dj38.tsp: not the National TSPs's dj38 \(38 nodes, EUC_2D\): 37 nodes"):
        collect(["national"], 0, 200, lambda name: tmp_path)


def test_without_copies_and_without_a_network_the_packages_instances_are_compared(tmp_path: Path) -> None:
    gathered, notes = collect(["tsplib", "x"], 40, 105, lambda name: tmp_path)
    names = [m.name for m in gathered]
    assert len(names) == 16
    assert {"berlin52", "lin105", "X-n101-k25", "X-n106-k14"} <= set(names)
    assert notes == []  # nothing is missing
    gathered, notes = collect(["tsplib"], 200, 226, lambda name: tmp_path)
    assert [m.name for m in gathered] == ["kroA200", "kroB200"]
    assert notes == ["Of tsplib 2 of 5 instances of 200 to 226 nodes are there; not ts225, tsp225, pr226."]
    (tmp_path / "berlin52.tsp").write_text("rubbish")
    with pytest.raises(NeurouteError, match=f"{tmp_path}/berlin52.tsp, line 1: "):  # the user's copies go first
        collect(["tsplib"], 40, 105, lambda name: tmp_path)


def named(given: str) -> list[tuple[str, str]]:
    return [(m.name, m.how) for m in parse(given, 2.0, lambda name: {}, ())]


def test_methods_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert named("nearest") == [("nearest", "one pass")]
    assert named("lkh") == [("lkh", "2 s")]
    assert named("tsp") == [("tsp", "multistart"), ("tsp", "2 s")]
    assert parse("hgs@cvrp", 2.0, lambda name: {}, ())[0].problems == ("cvrp",)
    Path("a_method_of_mine.py").write_text(
        "def solve(instance, seconds):\n    return list(range(instance.n))\n\n\nshortest = solve\n"
    )
    assert named("a_method_of_mine:solve") == [("a_method_of_mine", "2 s")]  # "solve" says nothing
    assert named("a_method_of_mine:shortest") == [("shortest", "2 s")]
    Path("another_of_mine.py").write_text("def solve(instance):\n    return []\n")
    for given, said in {
        "lkk": "no such solver, network or finished run",
        "lkh@vrptw": "no problem 'vrptw'",
        "no_such_module:solve": "no_such_module",
        "another_of_mine:solve": r"a function of \(instance, seconds\) is expected",
        "neuroute.networks.lehd:Lehd": "is a network; give its weights, too",
        "none.safetensors": "no such checkpoint",
    }.items():
        with pytest.raises(NeurouteError, match=said):
            named(given)


def test_a_wrong_method_is_named_before_anything_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(NeurouteError, match="--method lhk: no such solver.*; did you mean lkh"):
        neuroute.compare(["tsp", "lhk"], set=["tsplib"], out=tmp_path, work=tmp_path / "work")
    assert not (tmp_path / "work").exists()


@pytest.mark.usefixtures("without_pictures")
def test_without_a_folder_of_copies_python_compares_what_comes_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def no_network(*_: object, **__: object) -> None:
        raise urllib.error.URLError("no network")

    monkeypatch.setattr("urllib.request.urlopen", no_network)
    found = neuroute.compare(["nearest"], ["tsplib"], max_nodes=52)
    assert "berlin52" in set(found.records.instance)


def test_a_method_that_cannot_take_part_is_refused_before_anything_is_solved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tsp_file(Path("own.tsp"), 9)
    Path("mine.py").write_text("def solve(instance):\n    return [0]\n")
    for methods, why in {
        "nearest,mine=none.safetensors": "--method mine=none.safetensors: no such checkpoint",
        "nearest,quick=mine:solve": "--method quick=mine:solve: a function of (instance, seconds) is expected",
        "nearest,vrp": "--method vrp: solves the CVRP, of which own.tsp has no instance; leave the method out",
    }.items():
        code, said = call("compare", "--set", "own.tsp", "--method", methods, "--benchmarks", ".")
        assert (code, f"error: {why}" in said) == (2, True), said
        assert not Path("results").exists()


def test_sections_of_files_are_left_out_on_request_and_the_page_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tsp_file(Path("own.tsp"), 9)
    Path("own.tsp").write_text(Path("own.tsp").read_text().replace("EOF", "FIXED_EDGES_SECTION\n1 2\n-1\nEOF"))
    options = ("--set", "own.tsp", "--method", "nearest", "--benchmarks", ".", "--out", "o")
    code, said = call("compare", *options)
    assert (code, "FIXED_EDGES_SECTION is not supported" in said) == (2, True)
    code, said = call("compare", *options, "--ignore-section", "FIXED_EDGES_SECTION")
    assert code == 0, said
    assert "Instances of own.tsp are without FIXED_EDGES_SECTION of their files." in Path("o/table.md").read_text()


def test_a_network_of_ones_own_needs_its_weights_and_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gated_of_mine.py").write_text((ROOT / "docs" / "examples" / "swiglu.py").read_text())
    made = (  # by a process of its own: nothing here has looked for the module
        "import sys; sys.path.append('.')\nfrom pathlib import Path\n"
        "from neuroute.networks.weights import build, save_checkpoint\nfrom neuroute.core.digest import code_digest\n"
        "from neuroute.specs.objects import Network\n"
        "n = Network(kind='gated_of_mine:SwigluDecoderOnly', arguments={'depth': 1, 'width': 16, 'heads': 2})\n"
        "about = {'run': 'x/y', 'network': n.model_dump(), 'code': code_digest(n.kind)}\n"
        "save_checkpoint(Path('m.safetensors'), build(n), about)\n"
    )
    subprocess.run([sys.executable, "-c", made], check=True)
    given = "gated_of_mine:SwigluDecoderOnly=m.safetensors"
    assert named(given) == [("SwigluDecoderOnly", "greedy"), ("SwigluDecoderOnly", "2 s")]
    assert named(f"fast={given}") == [("fast", "greedy"), ("fast", "2 s")]
    assert named("m.safetensors") == [("m", "greedy"), ("m", "2 s")]


def test_a_network_that_looks_at_more_nodes_than_a_toy_has_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that looks at more than it was trained with says why it is not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("nearest_of_mine.py").write_text(
        "import torch\n\nfrom neuroute.networks.bq import Bq\n\n\nclass Net(Bq):\n    def encode(self, coords):\n"
        "        torch.cdist(coords, coords).topk(self.train_nodes)\n        return super().encode(coords)\n\n\n"
        "class More(Net):\n    def encode(self, coords):\n        torch.zeros(9).topk(10)\n"
    )
    arguments = {"depth": 1, "width": 8, "heads": 2, "feed_forward": 8, "train_nodes": 20}
    with Worker(Machine()) as process:
        for kind in ("Net", "More"):
            network = Network(kind=f"nearest_of_mine:{kind}", arguments=arguments)
            untrained(Path(f"{kind}.safetensors"), network, "x/y")
        greedy, *_ = parse("nearest_of_mine:Net=Net.safetensors", 0.2, lambda name: {}, ())
        assert process.answer(greedy, members()[3].instance, 0, 60).cost is not None
        greedy, *_ = parse("nearest_of_mine:More=More.safetensors", 0.2, lambda name: {}, ())
        with pytest.raises(NeurouteError, match="More: cannot be loaded: RuntimeError.*out of range"):
            process.answer(greedy, members()[3].instance, 0, 60)


def test_methods_are_called_as_they_are_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert named("quick=lkh") == [("quick", "2 s")]
    assert parse("quick=hgs@cvrp", 2.0, lambda name: {}, ())[0].problems == ("cvrp",)
    plain, renamed = (parse(given, 2.0, lambda name: {}, ())[0] for given in ("lkh", "quick=lkh"))
    assert plain.identity() == renamed.identity()  # so the answers are the same
    network = Network(kind="neuroute.networks.decoder_only:DecoderOnly", arguments={"depth": 1, "width": 8, "heads": 1})
    Path("made").mkdir()
    for file in ("lr=1.safetensors", "made/model.safetensors"):
        untrained(Path(file), network, "x/y")
    assert named("lr=1.safetensors")[0][0] == "lr=1"
    assert named("small=lr=1.safetensors")[0][0] == "small"
    monkeypatch.chdir("made")
    assert named("model.safetensors")[0][0] == "made"
    runs = {"toy/a": "model.safetensors", "toy/b": "model.safetensors"}
    with pytest.raises(NeurouteError, match=r"mine=toy: these are 2 runs; take one, as toy/a"):
        parse("mine=toy", 2.0, lambda name: runs, ())
    assert Compare(methods=["mine=toy/a@tsp", "lkh"]).sources == ["toy/a", "lkh"]


@pytest.mark.parametrize(
    ("given", "how", "hangs_on", "not_on"),
    [
        ("savings", "one pass", {"solvers.savings"}, {"decoding.tsp"}),
        ("lkh", "2 s", {"solvers.lkh"}, {"solvers.savings"}),
        ("tsp", "multistart", {"decoding.tsp", "networks.icam"}, {"solvers.savings", "networks.bq"}),
        ("tsp", "2 s", {"decoding.tsp", "solvers.savings", "api.within_time"}, {"decoding.cvrp"}),
        ("cvrp", "2 s", {"decoding.cvrp", "decoding.cvrp_search", "solvers.pyvrp"}, {"decoding.tsp"}),
    ],
)
def test_an_answer_hangs_on_all_code_that_finds_it(given: str, how: str, hangs_on: set[str], not_on: set[str]) -> None:
    (method,) = [m for m in parse(given, 2.0, lambda name: {}, ()) if m.how == how]
    modules = {module.removeprefix("neuroute.") for module, _ in reach(method.parts)}
    assert hangs_on <= modules
    assert not not_on & modules
    assert method.identity()["code"] == code_digest(*method.parts)


def test_a_comparison_that_fails_before_an_answer_leaves_no_folder(tmp_path: Path) -> None:
    out = tmp_path / "results" / "compare"
    with pytest.raises(Killed):
        run(members(), METHODS, [], out, solve=Pretended(last=0))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(Killed):
        run(members(), METHODS, [], out, solve=Pretended(last=1))
    assert len(list((out / "answers").iterdir())) == 1


def test_the_pages_function_is_a_sensible_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "how-to" / "compare.md").read_text()
    code = next(part for part in page.split("```python\n")[1:] if "def solve" in part).partition("```")[0]
    monkeypatch.chdir(tmp_path)
    Path("the_page.py").write_text(code)
    search_working_folder()
    function = resolve("the_page:solve")
    small, _ = collect(["tsplib"], 50, 76, lambda name: tmp_path)
    for member in small:
        gap = member.instance.gap(function(member.instance, 1.0))
        assert gap is not None
        assert gap < 15, member.name


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "own.tsp", "--method", "=lkh"], "a name goes before the equals sign"),
        (["--set", "own.tsp", "--method", "fast="], "a name goes before the equals sign"),
        (["--set", "own.tsp", "--method", "fast=lhk"], "--method lhk: no such solver"),
        (["--set", "own.tsp", "--method", "a=nearest,a=insertion"], "two methods are called 'a'"),
        (["--set", "tsplip"], "--set tsplip: no such file or folder, nor one of the sets tsplib, x, ags"),
        (["--set", "own.tsp", "--max-nodes", "5"], "no instance of 0 to 5 nodes is there"),
        (["--set", "own.tsp", "--method", "lkk"], "--method lkk: no such solver"),
        (["--set", "own.tsp", "--seconds", "0"], "--seconds 0: numbers above 0"),
        (["--set", "own.tsp", "--groups", "1,b"], "compare: groups.1: Input should be a valid integer"),
        (
            ["--set", "own.tsp", "--method", "hgs@cvrp"],
            "--method hgs@cvrp: solves the CVRP, of which own.tsp has no instance",
        ),
        (["--set", "own.tsp", "--clock", "cpu", "--threads", "2"], "--clock cpu: counts one thread"),
        (["--set", "own.tsp", "--out", "own.tsp"], "cannot be a folder"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str) -> None:
    monkeypatch.chdir(tmp_path)
    tsp_file(Path("own.tsp"), 9)
    named = [] if "--method" in options else ["--method", "nearest"]
    code, output = call("compare", "--benchmarks", ".", "--device", "cpu", *named, *options)
    lines = [line for line in output.splitlines() if line.startswith("error: ")]
    assert (code, len(lines)) == (2, 1), output
    assert said in lines[0]
    assert not Path("results").exists()


@pytest.mark.slow
def test_a_network_and_a_heuristic_are_compared_from_python_and_kept(tmp_path: Path) -> None:
    file, out = tsp_file(tmp_path / "own.tsp", 9), tmp_path / "out"
    how = {"seconds": 0.2, "benchmarks": tmp_path, "out": out}
    found = neuroute.compare(["nearest", "tsp"], [str(file)], **how)  # type: ignore[arg-type]
    rows = found.records.set_index(["method", "how"])
    assert sorted(rows.index) == [("nearest", "one pass"), ("tsp", "0.2 s"), ("tsp", "multistart")]
    assert (rows.unsolved == "").all()
    assert (rows.cost > 0).all()
    assert rows.gflops.notna().to_list() == [how == "multistart" for _, how in rows.index]
    assert (out / "pareto.svg").is_file()
    kept = {path: path.stat().st_mtime_ns for path in (out / "answers").iterdir()}
    again = neuroute.compare(["nearest", "tsp"], [str(file)], **how)  # type: ignore[arg-type]
    assert again.records.equals(found.records)
    assert {path: path.stat().st_mtime_ns for path in (out / "answers").iterdir()} == kept
    assert set(neuroute.compare("nearest", str(file), **how).records.method) == {"nearest"}  # type: ignore[arg-type]
    with pytest.raises(NeurouteError, match="seconds"):
        neuroute.compare(["nearest"], [str(file)], benchmarks=tmp_path, seconds=0, out=out)
    with pytest.raises(NeurouteError, match=r"^--method none.safetensors: no such checkpoint"):
        neuroute.compare(["nearest", "none.safetensors"], [str(file)], **how)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_process_that_takes_too_long_or_too_much_memory_costs_one_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("slow_or_not.py").write_text(
        "import time\n\nimport numpy as np\n\n\ndef solve(instance, seconds):\n    print('no answer')\n"
        "    if instance.n == 30:\n        np.ones(10**9)\n"
        "    if instance.n == 6:\n        time.sleep(600)\n    if instance.n == 7:\n        return [0, 0]\n"
        "    return list(range(instance.n))\n"
    )
    own = method("slow_or_not:solve", 1.0, kind="function")
    six, seven, eight, thirty = (Instance.from_arrays(m.instance.coords) for m in members()[:4])
    with Worker(Machine(memory_gb=1.0)) as process:
        assert process.answer(own, six, 0, 0.3).unsolved == "time"
        found = process.answer(own, eight, 0, 60)
        assert found.cost == pytest.approx(eight.cost(list(range(8))))
        assert found.seconds is not None
        assert process.answer(own, thirty, 0, 60).unsolved == "memory"  # 8 GB
        refused = process.answer(own, seven, 0, 60)
        assert refused.cost is None
        assert "with n = 7 is expected" in refused.unsolved
        with pytest.raises(NeurouteError, match="no_such: cannot be loaded"):
            process.answer(method("no_such", 1.0, kind="network"), eight, 0, 60)


def test_the_limit_is_of_the_answer_and_not_of_what_is_loaded_or_counted_for_it() -> None:
    built, search = parse("tsp", 0.1, lambda name: {}, ())
    with Worker(Machine()) as process:
        for each in (built, search):
            assert process.answer(each, members()[3].instance, 0, 0.6).unsolved == ""
        assert process.answer(built, members()[3].instance, 0, 0.6).gflops


def test_why_an_instance_is_unsolved_says_what_not_where(monkeypatch: pytest.MonkeyPatch) -> None:
    own, instance = method("mine", 1.0, kind="function"), members()[0].instance
    for answer, why in (([1.5], "a tour of whole numbers"), (KeyError("x"), r"KeyError('x')")):

        def stops(instance: Instance, _: int, answer: object = answer) -> np.ndarray:
            if isinstance(answer, Exception):
                raise answer
            return instance.stops_of(answer)

        monkeypatch.setitem(worker._methods, own, worker._Loaded(stops))
        assert worker.solve(own, instance, 0).unsolved.startswith(why)
    rows = records({"mine": [None] * 6, "other": [110.0] * 6})
    rows.loc[rows.method == "mine", "unsolved"] = list("edcbaa")
    note = next(note for note in table(rows, [0]).notes if note.startswith("Unsolved"))
    assert note.endswith("Here: mine (one pass) 6, by a and b and c and 2 more.")


def test_what_builds_for_a_search_is_loaded_before_each_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, submit = list[int](), Process.submit

    def recorded(process: Process, function: str, instance: Instance, *more: Any) -> None:
        sizes.append(instance.n)
        submit(process, function, instance, *more)

    monkeypatch.setattr(Process, "submit", recorded)
    search = next(m for m in parse("tsp", 0.3, lambda name: {}, ()) if m.seconds)
    thirty = members()[3].instance
    assert worker.load(Machine(), search, thirty) is True
    for answers in (1, 2):
        worker.prepare(search, thirty)
        assert worker.solve(search, thirty, 0).cost is not None
        assert sizes == [8, 30] * answers  # the small one, before the clock starts; and what is asked for
