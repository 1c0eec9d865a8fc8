"""What several test rooms need."""

import os

# Workers share the cores: a thread for each.  Before numpy and torch are imported; one's own setting stands.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


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


@pytest.fixture
def one_thread() -> Iterator[None]:
    """For networks that are too small for threads to help."""
    import torch  # here, as plans and files are tested without it

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
