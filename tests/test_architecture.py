"""The structure of the code: imports go one way, papers stand alone, folders stay small."""

import ast
import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def imports(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("docs/imports.py")


def test_imports_go_one_way(imports: ModuleType) -> None:
    assert imports.against_the_direction() == []


def test_no_module_imports_itself_by_way_of_others(imports: ModuleType) -> None:
    assert imports.circles(imports.imports(running=True)) == []


@pytest.mark.parametrize("folder", ["papers", "systems"])
def test_no_plug_in_imports_another(folder: str, imports: ModuleType) -> None:
    def plug_in(module: str) -> str | None:
        match = re.fullmatch(rf"{folder}\.([a-z]+)\..*", module)
        return match and match[1]

    edges = [(here, there) for here, there in imports.imports() if plug_in(here) and plug_in(there)]
    assert [edge for edge in edges if plug_in(edge[0]) != plug_in(edge[1])] == []


@pytest.mark.parametrize("folder", ["papers", "systems"])
def test_nothing_outside_plug_ins_imports_one(folder: str, imports: ModuleType) -> None:
    """A plug-in is looked up by the name of its folder."""
    inside = {module for module in imports.modules() if module.startswith(f"{folder}.")}
    assert [edge for edge in imports.imports() if edge[1] in inside and edge[0] not in inside] == []


def test_the_drawing_shows_the_imports_of_today(imports: ModuleType) -> None:
    assert imports.PAGE.read_text() == imports.page_with_drawing(), "run: python docs/imports.py"


def test_folders_and_files_stay_small(imports: ModuleType) -> None:
    files = list(imports.modules().values())
    crowded = [folder for folder, count in Counter(file.parent for file in files).items() if count > 26]  # __init__
    assert crowded == []
    # More than 300 lines need one idea (what a code digest follows); none needs more than 450.
    assert [file.name for file in files if len(file.read_text().splitlines()) > 450] == []


def test_tables_become_csv_in_one_place(imports: ModuleType) -> None:
    """Which makes harmless what a spreadsheet would compute (`core/text.py`)."""
    writing = [
        name for name, file in imports.modules().items() if re.search(r"to_csv\(|csv\.(w|W|Dict[wW])", file.read_text())
    ]
    assert writing == ["core.text"]


# Say nothing of what a thing is when they stand alone.
PARTICIPLES = {
    "aside", "asked", "begun", "chosen", "done", "drawn", "found", "given", "gone", "held", "kept", "known", "left",
    "made", "measured", "named", "own", "printed", "room", "said", "seen", "shown", "stated", "taken", "together",
    "told", "wanted", "written",
}  # fmt: skip
NAMED_BY_NOUNS = (
    "accounting", "analysis", "cli", "comparison", "core", "dag", "datasets", "decoding", "evaluation", "instances",
    "networks",
    "papers", "plan", "problems", "rehearsal", "rendering", "solvers", "systems", "training", "user",
)  # fmt: skip


def bare_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, name) of variables, arguments, functions and classes that are such a word alone; not of fields.

    A field is read behind its object, and may be a key of saved files.
    """
    bodies = [statement for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for statement in node.body]
    fields = {id(part) for s in bodies if isinstance(s, ast.Assign | ast.AnnAssign) for part in ast.walk(s)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        else:
            continue
        if not name.isupper() and name.strip("_").lower() in PARTICIPLES:
            yield node.lineno, name


@pytest.mark.parametrize("package", NAMED_BY_NOUNS)
def test_names_say_what_a_thing_is(package: str) -> None:
    source = ROOT / "src" / "neuroute"
    files = sorted((source / package).rglob("*.py"))
    assert files
    found = [(file, line, name) for file in files for line, name in bare_names(ast.parse(file.read_text()))]
    assert [f"{file.relative_to(ROOT)}:{line}: {name}" for file, line, name in found] == []


def test_bare_names_are_those_of_variables_arguments_functions_and_classes() -> None:
    text = "class Kept:\n    left: int\n    def found(self, own): given = self.left\n_seen = [known for known in ()]\n"
    names = {name for _, name in bare_names(ast.parse(text + "kept_solutions = OWN = 1\n"))}
    assert names == {"Kept", "found", "own", "given", "_seen", "known"}


@pytest.mark.parametrize("file", sorted((ROOT / "bench").glob("*.py")), ids=lambda path: path.name)
def test_what_benchmarks_import_is_there(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("neuroute"):
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                assert hasattr(module, alias.name) or importlib.util.find_spec(f"{node.module}.{alias.name}")
