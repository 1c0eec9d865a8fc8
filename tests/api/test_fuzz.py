"""Mutated files of every kind: an answer or one plain line.  `bench/fuzz.py` reads a hundred thousand."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings

KINDS = ("TSPLIB .tsp", "TSPLIB .tsp, EXPLICIT", "VRPLIB .vrp", "Solomon .txt", ".tour", ".sol", "LEHD .txt, TSP",
         "LEHD .txt, CVRP", ".npz, arrays", ".npz, bytes", ".pkl, values", ".pkl, bytes", "config.yaml", "scale",
         ".safetensors", ".safetensors, imported", ".pt")  # fmt: skip


@pytest.fixture
def fuzz(script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    return script("bench/fuzz.py")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")  # of torch
@pytest.mark.parametrize("name", KINDS)
def test_mutated_files_are_read_rightly_or_refused_in_a_line(fuzz: ModuleType, tmp_path: Path, name: str) -> None:
    kind, outcomes = fuzz.KINDS[name], set()
    how = {"derandomize": True, "deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}

    @settings(max_examples=20 if name == "scale" else 60, **how)
    @given(kind.mutants)
    def run(content: bytes) -> None:
        outcomes.add(fuzz.check(kind, content, tmp_path))

    run()
    assert "refused" in outcomes


def test_whole_files_are_read(fuzz: ModuleType, tmp_path: Path) -> None:
    packed, pickled = tuple(map(fuzz.packed, fuzz.ARRAYS)), fuzz.pickled()
    weights = fuzz.checkpoint()
    texts = (fuzz.TSP, fuzz.EXPLICIT, fuzz.VRP, fuzz.SOLOMON, fuzz.TOUR, fuzz.SOL, fuzz.LEHD_TSP, fuzz.LEHD_CVRP)
    others = (packed, packed, pickled, pickled, fuzz.CONFIG, fuzz.MICRO, weights[:1], weights, fuzz.torch_files())
    for name, whole in zip(KINDS, (*texts, *others), strict=True):
        contents = [each if isinstance(each, bytes) else each.encode() for each in whole]
        assert [fuzz.check(fuzz.KINDS[name], each, tmp_path) for each in contents] == ["read"] * len(whole), name


def test_a_title_that_states_more_than_can_be_counted_is_refused(fuzz: ModuleType, tmp_path: Path) -> None:
    """What the long runs found."""
    file = fuzz.SOLOMON[0].replace("of 4 ", f"of {'9' * 5000} ")
    assert fuzz.check(fuzz.KINDS["Solomon .txt"], file.encode(), tmp_path) == "refused"


def test_all_kinds_are_tried(fuzz: ModuleType) -> None:
    assert set(fuzz.KINDS) == set(KINDS)
    assert sum(kind.share for kind in fuzz.KINDS.values()) == 100_000


def test_what_breaks_a_rule_is_told(fuzz: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(read: Callable[[Path], None]) -> str:
        with pytest.raises(fuzz.Wrong) as error:
            fuzz.check(fuzz.Kind("a", None, read, 0), b"", tmp_path)
        return str(error.value)

    def fail(path: Path) -> None:
        raise KeyError(path.name)

    def go_on(path: Path) -> None:
        raise fuzz.neuroute.NeurouteError("two\nlines")

    def spin(path: Path) -> None:
        while True:
            pass

    assert told(fail).startswith("KeyError: 'a'")
    assert told(go_on).startswith("no plain line")
    monkeypatch.setattr(fuzz, "SECONDS", 0.05)
    assert told(spin).startswith("Hang")


def test_lengths_that_differ_from_their_definition_are_told(
    fuzz: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from neuroute.problems.instances import instance

    monkeypatch.setattr(instance, "distances", lambda a, b, *_: abs(a - b).sum(1))
    for file in fuzz.TSP[:4]:
        with pytest.raises(fuzz.Wrong, match="by definition"):
            fuzz.check(fuzz.KINDS["TSPLIB .tsp"], file.encode(), tmp_path)
