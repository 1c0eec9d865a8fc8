"""Libraries that take long to import, imported when something of them is first used.

Modules of tables and figures are imported to plan, which needs neither pandas nor matplotlib.
"""

import importlib
from typing import Any

__all__ = ["mpl", "pd", "torch"]


class _Lazy:
    """A module whose attributes, and submodules, are looked up in the real one."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        module = importlib.import_module(self._name)
        try:
            value = getattr(module, attribute)
        except AttributeError:
            value = importlib.import_module(f"{self._name}.{attribute}")
        setattr(self, attribute, value)
        return value


pd = _Lazy("pandas")
mpl = _Lazy("matplotlib")
torch = _Lazy("torch")
