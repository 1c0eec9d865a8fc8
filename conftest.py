"""Fixtures that several folders of tests need."""

import os
import sys

# Workers share the cores: a thread for each.  Before numpy and torch are imported; one's own setting stands.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import importlib.util
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from neuroute.pipeline.plan.paper import FOLDERS

ROOT = Path(__file__).resolve().parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--renew-golden", action="store_true", help="take artifacts and trainings as they are now as golden"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # xdist would begin with the files of most tests


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with files that run the DAG, most such tests first: one at the end leaves a worker idle for minutes."""
    runs = Counter(item.path for item in items if item.get_closest_marker("dag"))
    items.sort(key=lambda item: -runs[item.path])


@pytest.fixture(scope="session")
def script() -> Callable[[str], ModuleType]:
    """A function that imports a file of the checkout which is in no package: `docs/imports.py`."""

    def load(path: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def shared() -> Path:
    """Public data beside the checkout (labels, benchmarks, test sets), where there is any."""
    folder = Path(os.environ.get("NEUROUTE_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("no folder with public data; set NEUROUTE_SHARED to one")
    return folder


@pytest.fixture(scope="session")
def public(shared: Path) -> Callable[[str], Path]:
    """A path within the public data; the test is skipped where this copy is without it."""

    def found(name: str) -> Path:
        if not (shared / name).exists():
            pytest.skip(f"no {shared / name}")
        return shared / name

    return found


@pytest.fixture(autouse=True, scope="module")
def own_papers() -> Iterator[None]:
    """Folders of papers that configurations of a module's tests add are forgotten after it."""
    before = list(FOLDERS)
    yield
    FOLDERS[:] = before


@pytest.fixture
def hide_solvers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A function that makes Concorde ("concorde") or packages of solvers missing, as on a machine without them."""
    from neuroute.solvers import base, concorde

    real, hidden = base.package_version, set[str]()

    def version(package: str) -> str:
        if package in hidden:
            raise base.PackageNotFoundError(package)
        return real(package)

    def hide(*names: str) -> None:
        hidden.update(names)
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)  # an import of it fails
        if "concorde" in names:
            monkeypatch.setattr(concorde, "PLACES", (("no_such_package", "none", "."),))
            concorde._find.cache_clear()
            concorde._extension.cache_clear()

    monkeypatch.setattr(base, "package_version", version)
    yield hide
    concorde._find.cache_clear()
    concorde._extension.cache_clear()


@pytest.fixture
def one_thread() -> Iterator[None]:
    """For networks that are too small for threads to help."""
    import torch  # here, as plans and files are tested without it

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
