"""Digests that an earlier process found hold until a source file changes."""

import atexit
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from neuroute.plan import digest, known_digests

ENTRY = "neuroute.problems.tsp:lengths"


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], tuple[str, int]]]:
    """What a new process finds for an entry, and how many digests it had to work out."""
    (tmp_path / "module.py").write_text("x = 1\n")
    worked_out: list[str] = []

    def work_out(*entries: str) -> str:
        worked_out.extend(entries)
        return f"digest of {(tmp_path / 'module.py').read_text()}"

    monkeypatch.setattr(known_digests, "FILE", tmp_path / "digests.json")
    monkeypatch.setattr(known_digests, "_sources", lambda: iter([("module.py", tmp_path / "module.py")]))
    monkeypatch.setattr(digest, "code_digest", work_out)

    def run(entry: str) -> tuple[str, int]:
        at_end: list[Callable[[], None]] = []
        monkeypatch.setattr(atexit, "register", at_end.append)
        known_digests._load_digests.cache_clear()
        worked_out.clear()
        found = known_digests.code_digest(entry)
        for call in at_end:
            call()
        return found, len(worked_out)

    yield run
    known_digests._load_digests.cache_clear()


def test_a_digest_is_worked_out_once(process: Callable[[str], tuple[str, int]]) -> None:
    first, again = process(ENTRY), process(ENTRY)
    assert (first[1], again) == (1, (first[0], 0))


def test_an_edit_makes_all_be_worked_out_anew(process: Callable[[str], tuple[str, int]], tmp_path: Path) -> None:
    before, _ = process(ENTRY)
    (tmp_path / "module.py").write_text("x = 2  # longer\n")
    after, worked_out = process(ENTRY)
    assert worked_out == 1
    assert before != after


@pytest.mark.parametrize("text", ["", "{", "[]", '{"state": 1}'])
def test_a_damaged_file_is_as_none(process: Callable[[str], tuple[str, int]], tmp_path: Path, text: str) -> None:
    (tmp_path / "digests.json").write_text(text)
    assert process(ENTRY)[1] == 1


def test_modules_of_the_users_own_are_not_remembered(process: Callable[[str], tuple[str, int]]) -> None:
    assert [process("mine:Network")[1] for _ in range(2)] == [1, 1]
