"""What users get where something cannot be: one plain line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from neuroute.core.errors import NeurouteError


@contextmanager
def one_line(*patterns: str) -> Iterator[None]:
    """A block that ends in an error of one line, in which each of the patterns is found."""
    with pytest.raises(NeurouteError) as error:
        yield
    line = str(error.value)
    assert "\n" not in line, line
    for pattern in patterns:
        assert re.search(pattern, line), (pattern, line)
