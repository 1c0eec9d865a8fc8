"""The source that made something: dirty after an edit of the package, or of a system beside it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuroute.core import source as module


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    package, system, elsewhere = tmp_path / "repo/src/pkg", tmp_path / "repo/extras/system", tmp_path / "other"
    for folder in (package, system, elsewhere):
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
    (tmp_path / "repo/notes.md").write_text("")
    git = ["git", "-C", str(tmp_path / "repo"), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.setattr(module, "PACKAGE", package)
    monkeypatch.setattr(module, "code_folders", lambda: {package, system, elsewhere})
    module.source.cache_clear()
    yield
    module.source.cache_clear()


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize(
    ("edited", "dirty"),
    [
        ("repo/src/pkg/__init__.py", True),
        ("repo/extras/system/__init__.py", True),
        ("repo/extras/system/new.py", True),
        ("repo/notes.md", False),
        ("other/__init__.py", False),
    ],
)
def test_an_edit_of_code_makes_it_dirty(tmp_path: Path, edited: str, dirty: bool) -> None:
    (tmp_path / edited).write_text("1\n")
    found = module.source()
    assert len(found["commit"]) == 40
    assert found["dirty"] is dirty
