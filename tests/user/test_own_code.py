"""Digests of code that a user edits while Python runs: in a notebook's cells, and in modules beside it."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import one_line

from neuroute.user.model import digest_of

CELLS = """
from functools import lru_cache
class Base:
    scale = 2
@lru_cache
def halve(x):
    return x / 2
SIZES, MODES = {"a": [1]}, {"x", "y", "z"}
class Net(Base):
    def __init__(self, hidden=8, *, heads=4):
        self.model = sum(7 * i for i in (hidden, heads)) * halve(SIZES["a"][0])
    @property
    def best(self):
        return "x" in MODES or 9
from neuroute.user.model import digest_of
print(digest_of("__main__:Net"))
"""


def digests(edits: list[tuple[str, str]], seed: str) -> list[str]:
    """Of the cells as they are, and after each of these edits, in one process."""
    program = "".join(CELLS.replace(*edit) for edit in [("", ""), *edits])
    environment = os.environ | {"PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_cell_has_another_digest_after_each_edit_that_counts_and_none_besides() -> None:
    same = [("from neuroute.user", "model = 3\nfrom neuroute.user"), ("(x):", '(x):\n    "Half."')]
    edits = [("scale = 2", "scale = 3"), ("/ 2", "/ 3"), ("[1]", "[2]"), ("=8", "=9"), ("=4", "=5"), ("7 *", "6 *")]
    first, *others = digests([*edits, ("or 9", "or 8")], "1")
    assert len({first, *others}) == len(edits) + 2
    assert digests(same, "2") == [first] * 3  # where a set has another order


def test_a_module_that_is_edited_counts_once_it_is_reloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "own_edited.py"
    file.write_text("RATE = 1\ndef twice(x):\n    return 2 * x\n")
    module, entry = importlib.import_module("own_edited"), "own_edited:twice"
    first = digest_of(entry)
    file.write_text("RATE = 1\ndef twice(x):\n    return x + x  # not 2 * x\n")
    for _ in range(2):
        with one_line("own_edited.py: edited since it was imported; reload own_edited, or start Python anew"):
            digest_of(entry)
    importlib.reload(module)
    assert digest_of(entry) != first
