"""What several test rooms need."""

import os
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
