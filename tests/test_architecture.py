"""The structure of the code: imports go one way, papers stand alone."""

import ast
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def imports(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("docs/imports.py")


def test_imports_go_one_way(imports: ModuleType) -> None:
    assert imports.against_the_direction() == []


def test_the_library_imports_nothing_of_the_pipeline(imports: ModuleType) -> None:
    edges = [edge for edge in imports.imports() if edge[1].startswith("pipeline")]
    assert edges
    assert [edge for edge in edges if not edge[0].startswith("pipeline")] == []


def test_no_module_imports_itself_by_way_of_others(imports: ModuleType) -> None:
    assert imports.circles(imports.imports(running=True)) == []


def test_no_paper_imports_another(imports: ModuleType) -> None:
    def paper(module: str) -> str | None:
        match = re.fullmatch(r"pipeline\.papers\.([a-z]+)\..*", module)
        return match and match[1]

    edges = [(here, there) for here, there in imports.imports() if paper(here) and paper(there)]
    assert edges
    assert [edge for edge in edges if paper(edge[0]) != paper(edge[1])] == []


def test_nothing_outside_papers_imports_one(imports: ModuleType) -> None:
    """A paper is looked up by the name of its folder."""
    inside = {module for module in imports.modules() if module.startswith("pipeline.papers.")}
    assert inside
    assert [edge for edge in imports.imports() if edge[1] in inside and edge[0] not in inside] == []


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
