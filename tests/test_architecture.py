"""The structure of the code: imports go one way, papers stand alone."""

import ast
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from neuroute.pipeline.plan.paper import paper_folders

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def imports(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("docs/imports.py")


def test_imports_go_one_way(imports: ModuleType) -> None:
    """So the library imports nothing of the pipeline, which is above all of it."""
    assert imports.against_the_direction() == []


def test_no_module_imports_itself_by_way_of_others(imports: ModuleType) -> None:
    assert imports.circles(imports.imports(running=True)) == []


def test_a_paper_is_named_in_its_own_folder_alone(imports: ModuleType) -> None:
    """All else, other papers too, looks it up by the name of its folder; a text may name its modules as well."""
    name = re.compile(rf"neuroute\.pipeline\.papers(?:\.| import .*?\b)({'|'.join(paper_folders())})\b")
    found = [(file, paper) for file in imports.SOURCE.rglob("*.py") for paper in name.findall(file.read_text())]
    assert found
    assert [(file, paper) for file, paper in found if f"/pipeline/papers/{paper}/" not in file.as_posix()] == []


def test_the_drawing_shows_the_imports_of_today(imports: ModuleType) -> None:
    assert imports.PAGE.read_text() == imports.page_with_drawing(), "run: python docs/imports.py"


def test_tables_become_csv_in_one_place(imports: ModuleType) -> None:
    """Which makes harmless what a spreadsheet would compute (`core/text.py`)."""
    writing = [
        name for name, file in imports.modules().items() if re.search(r"to_csv\(|csv\.(w|W|Dict[wW])", file.read_text())
    ]
    assert writing == ["core.text"]


@pytest.mark.parametrize("file", sorted((ROOT / "bench").glob("*.py")), ids=lambda path: path.name)
def test_what_benchmarks_import_is_there(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("neuroute"):
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                assert hasattr(module, alias.name) or importlib.util.find_spec(f"{node.module}.{alias.name}")
