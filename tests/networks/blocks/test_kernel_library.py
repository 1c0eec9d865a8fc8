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


def name_of(kernel: ModuleType) -> str:
    return kernel.__name__.rpartition(".")[2]


def fail(*_: object) -> None:
    raise AssertionError("it compiles")
