"""Kernels are compiled once, by the compiler that is there, where what it made can be kept."""

import hashlib
import logging
from pathlib import Path

import pytest

from neuroute.networks.kernels import library

compiled = pytest.mark.skipif(bool(library.reason()), reason=library.reason())
make = library.library.__wrapped__  # what was made before in this process is not looked at


def test_code_digests_follow_the_sources() -> None:
    """They read Python: an edit of a C file changes a constant there."""
    assert hashlib.sha256(library.source().encode()).hexdigest()[:16] == library.VERSION


@compiled
def test_a_compiler_makes_it() -> None:
    """Where it could not, the tests of operators would all be skipped."""
    assert library.library() is not None


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and one small file in place of all that takes half a minute."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "moves.c").write_bytes((library.FOLDER / "moves.c").read_bytes())
    monkeypatch.setattr(library, "FOLDER", tmp_path / "sources")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@compiled
def test_it_is_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert make() is not None
    (made,) = (cache / "neuroute").iterdir()
    assert made.name.startswith(f"kernels-{library.VERSION}-")
    monkeypatch.setattr(library, "_compile", fail)
    assert make() is not None


@compiled
def test_where_nothing_can_be_kept_nothing_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "neuroute").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(library, "_compile", fail)
    with caplog.at_level(logging.WARNING):
        assert make() is None
    assert "kernels cannot be made" in caplog.text
    monkeypatch.setattr(library, "library", lambda: None)
    assert library.describe() == "torch's own: they could not be compiled"


@pytest.fixture
def cached(cache: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The library that is kept in a cache of its own, and another one."""
    (cache / "empty.c").write_text("int nothing;\n")
    library._compile(["cc", "-fPIC"], [cache / "empty.c"], cache / "other.so")
    with monkeypatch.context() as patch:
        patch.setattr(library.ctypes, "CDLL", lambda _: None)  # one that is loaded stays so under its name
        make()
    (made,) = (cache / "neuroute").iterdir()
    return made, cache / "other.so"


@compiled
def test_the_cache_is_this_user_s_alone(cached: tuple[Path, Path]) -> None:
    assert cached[0].parent.stat().st_mode & 0o777 == 0o700
    assert cached[0].stat().st_mode & 0o777 == 0o600


@compiled
@pytest.mark.parametrize("damage", ["cut", "empty", "one byte", "no symbol", "others may write it", "old"])
def test_a_library_that_is_not_whole_or_another_s_is_made_anew(cached: tuple[Path, Path], damage: str) -> None:
    path, other = cached
    content = path.read_bytes()
    damages = {
        "cut": content[:9000],
        "empty": b"",
        "one byte": bytes([*content[:5000], content[5000] ^ 1, *content[5001:]]),
        "no symbol": other.read_bytes()[:-32],
        "old": content[:-32],
    }
    path.write_bytes(damages.get(damage, other.read_bytes()))
    if damage == "others may write it":
        path.chmod(0o666)
    kernel = make()
    assert kernel is not None
    assert kernel.move is not None
    assert path.read_bytes()[-32:] == hashlib.sha256(path.read_bytes()[:-32]).digest()


@compiled
def test_a_library_in_a_folder_that_others_may_write_is_not_loaded(
    cached: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cached[0].parent.chmod(0o777)
    monkeypatch.setattr(library.ctypes, "CDLL", fail)
    assert make() is None
    assert "others may write there; remove it, or make it yours alone: chmod 700" in caplog.text


def fail(*_: object) -> None:
    raise AssertionError("it compiles")
