"""Copies of the project, and what is compared of them, are those of other tests."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / folder) for folder in ("tests/dag", "bench")]
