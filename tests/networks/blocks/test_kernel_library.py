"""Kernels are compiled once, by the compiler that is there, where what it made can be kept."""

import hashlib
import logging
from pathlib import Path
from types import ModuleType

import pytest

from neuroute.networks.blocks.kernels import __main__ as every
from neuroute.networks.blocks.kernels import attention, decision, library, linear, routes

KERNELS = [attention, decision, linear, routes]
compiled = pytest.mark.skipif(bool(library.reason()), reason=library.reason())
make = library.library.__wrapped__  # what was made before in this process is not looked at


@pytest.mark.parametrize("kernel", KERNELS)
def test_code_digests_follow_the_sources(kernel: ModuleType) -> None:
    """They read Python: an edit of a C file changes a constant there."""
    assert hashlib.sha256(library.source(name_of(kernel)).encode()).hexdigest()[:16] == kernel.VERSION


@compiled
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_compiler_makes_each(kernel: ModuleType) -> None:
    """Where it could not, the tests of that kernel would all be skipped."""
    assert library.library(name_of(kernel), kernel.VERSION) is not None


def test_all_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = dict[str, str]()
    monkeypatch.setattr(every, "library", lambda name, version: made.update({name: version}))
    every.main()
    assert made == {name_of(kernel): kernel.VERSION for kernel in KERNELS}


@compiled
def test_it_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert make("routes", routes.VERSION) is not None
    (made,) = (tmp_path / "neuroute").iterdir()
    assert made.name.startswith(f"routes-{routes.VERSION}-")
    monkeypatch.setattr(library, "_compile", fail)
    assert make("routes", routes.VERSION) is not None


@compiled
def test_where_nothing_can_be_kept_nothing_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "neuroute").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(library, "_compile", fail)
    with caplog.at_level(logging.WARNING):
        assert make("routes", routes.VERSION) is None
    assert "its kernel cannot be made" in caplog.text


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The kernel that is kept in a cache of its own, and another library."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library._compile(["cc", "-shared", "-fPIC"], empty_source(tmp_path), tmp_path / "other.so")
    with monkeypatch.context() as patch:
        patch.setattr(library.ctypes, "CDLL", lambda _: None)  # one that is loaded stays so under its name
        make("routes", routes.VERSION)
    (made,) = (tmp_path / "neuroute").iterdir()
    return made, tmp_path / "other.so"


def empty_source(folder: Path) -> Path:
    (folder / "empty.c").write_text("int nothing;\n")
    return folder / "empty.c"


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
    kernel = make("routes", routes.VERSION)
    assert kernel is not None
    assert kernel.go is not None
    assert path.read_bytes()[-32:] == hashlib.sha256(path.read_bytes()[:-32]).digest()


@compiled
def test_a_library_in_a_folder_that_others_may_write_is_not_loaded(
    cached: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cached[0].parent.chmod(0o777)
    monkeypatch.setattr(library.ctypes, "CDLL", fail)
    assert make("routes", routes.VERSION) is None
    assert "others may write there; remove it, or make it yours alone: chmod 700" in caplog.text


def name_of(kernel: ModuleType) -> str:
    return kernel.__name__.rpartition(".")[2]


def fail(*_: object) -> None:
    raise AssertionError("it compiles")
