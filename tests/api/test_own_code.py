"""Digests of code that a user edits while Python runs: in a notebook's cells, and in modules beside it."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import one_line

import neuroute
from neuroute.api.model import digest_of

ROOT = Path(__file__).resolve().parents[2]
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
from neuroute.api.model import digest_of
print(digest_of("__main__:Net"))
"""


def digests(edits: list[tuple[str, str]], seed: str) -> list[str]:
    """Of the cells as they are, and after each of these edits, in one process."""
    program = "".join(CELLS.replace(*edit) for edit in [("", ""), *edits])
    environment = os.environ | {"PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
def test_a_cell_has_another_digest_after_each_edit_that_counts_and_none_besides() -> None:
    same = [("from neuroute.api", "model = 3\nfrom neuroute.api"), ("(x):", '(x):\n    "Half."')]
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


@pytest.mark.slow
def test_a_saved_checkpoint_finds_its_class_by_its_code_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a file names is imported only if the user's own code wrote it: nothing of a stranger's choice runs."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "examples" / "swiglu.py").read_text()
    for name in ("own_saved", "own_other"):
        Path(f"{name}.py").write_text(text)
    made = "neuroute.train({0}.SwigluDecoderOnly, **{1}).save('{0}.safetensors')".format
    arguments = {"depth": 1, "width": 16, "heads": 2}
    how = {"n": 8, "how": "labels", "arguments": arguments, "batches": 1, "batch_size": 4, "validations": 1}
    how |= {"validate_on": 4, "solver": "nearest", "workers": 1, "device": "cpu", "threads": 1}
    trainings = [made(name, how | {"name": name}) for name in ("own_saved", "own_other")]
    code = "\n".join(["import neuroute, own_saved, own_other", *trainings])
    subprocess.run([sys.executable, "-c", code], check=True)
    assert neuroute.load_model("own_saved.safetensors", "cpu").name == "python/own_saved"
    Path("own_other.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{text}")
    with one_line("own_other.safetensors: holds Swiglu.*code is missing or changed; give own_other:SwigluDecoderOnly="):
        neuroute.load_model("own_other.safetensors", "cpu")
    assert not (tmp_path / "ran").exists()
