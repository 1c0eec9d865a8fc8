"""The package stands on what the reference page lists as public, alone."""

import ast
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import neuroute
import neuroute_compare


def test_the_public_interface_is_enough(script: Callable[[str], ModuleType]) -> None:
    public = ("neuroute.api", *script("docs/generate/python_reference.py").BESIDE)
    imported = set[str]()
    for file in Path(neuroute_compare.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
    names = {name for name in imported if name.startswith("neuroute.")}
    assert names
    inside = {name for module in public for name in names if f"{name}.".startswith(f"{module}.")}
    assert names - inside - {f"neuroute.{name}" for name in neuroute.__all__} == set()
    assert [module for module in public if not any(f"{name}.".startswith(f"{module}.") for name in names)] == []
