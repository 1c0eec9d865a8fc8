"""Functions and classes by dotted name, which keeps the plan free of the modules that it names."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from neuroute.core.errors import NeurouteError


def resolve(dotted: str) -> Callable[..., Any]:
    """Return the function `package.module:function`.  Raises NeurouteError if there is none."""
    module, _, name = dotted.partition(":")
    try:
        function: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return function
    except (ModuleNotFoundError, AttributeError) as error:
        raise NeurouteError(f"function {dotted}: {error}") from None


def search_working_folder() -> None:
    """Let modules be imported that lie in the working folder, which holds the Snakefile, after all others."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
