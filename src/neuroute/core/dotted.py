"""Functions by dotted name, which keeps the plan free of the modules that it names."""

import importlib
from collections.abc import Callable
from typing import Any

from neuroute.core.errors import NeurouteError


def resolve(dotted: str) -> Callable[..., Any]:
    """`package.module:function` -> the function.  Raises NeurouteError when there is none."""
    module, _, name = dotted.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise NeurouteError(f"function {dotted}: {error}") from None
