"""Code digests: what a stage's code *does*, as one hash, so that edits rerun exactly what depends on them.

Snakemake sees config through params and files through inputs, but not edits in an imported package.  Each stage
therefore carries a digest of the definitions that its entry points can reach: functions, classes and module-level
values, followed by name through imports.  What is addressed by a dotted name at run time (a network, an artifact's
function) is a further entry.

The digest depends on the definitions and on which of them uses which.  It does not depend on comments, docstrings,
formatting, types and names of variables inside functions, definitions that are not reached, or on where definitions
lie: renaming a file, or moving a definition to another, changes no digest.

Digests that an earlier process worked out lie beside the bytecode, as parsing the package takes two seconds.  They hold
while no source file of the package, or of a folder with papers, has changed its size or time.
"""

import ast
import atexit
import hashlib
import importlib.util
import json
import re
import sys
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from neuroute.core.dotted import packages, roots
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_json

PACKAGE = "neuroute"
ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "__pycache__" / "digests.json"
Place = tuple[str, str]  # (module, name of a top-level definition; "" for the module itself)
INSTALLED = {"site-packages", "dist-packages"}  # folders of packages
MODULE = "module"  # stands for a module that is used as a whole, whatever its name
OWN: dict[str, tuple[Path, bytes]] = {}  # a user's modules: file and text, as they were read


class UndefinedError(NeurouteError, LookupError):
    """A definition that is named, and is not there."""


@dataclass
class _Module:
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, Place] = field(default_factory=dict)  # local name -> where it comes from
    loose: list[ast.stmt] = field(default_factory=list)  # statements that bind no name but run at import
    texts: dict[ast.stmt, tuple[str, set[Place]]] = field(default_factory=dict)  # those that were asked for


def code_digest(*entries: str) -> str:
    """Hash of everything that the entries ("package.module:name", or "package.module:" for all of it) reach.

    It is remembered unless they reach a module of the user's own.  Raises UndefinedError if an entry does not exist.
    """
    key = " ".join(sorted(entries))
    digests = _load_digests()
    if key in digests:
        return digests[key]
    reached = reach(entries)
    signatures = {_signature(place) for place in reached}
    digest = hashlib.sha256("\n".join(sorted(signatures)).encode()).hexdigest()[:16]
    if all(is_installed(module) for module, _ in reached):
        digests[key] = digest
    return digest


def reach(entries: Iterable[str]) -> set[Place]:
    """List all definitions that the entries reach."""
    parts = (entry.partition(":") for entry in entries)
    waiting = [_resolve((module, name)) for module, _, name in parts]
    reached: set[Place] = set()
    while waiting:
        place = waiting.pop()
        if place not in reached:
            reached.add(place)
            waiting.extend(_definition(place)[1])
    return reached


def forget_own() -> None:
    """Read a user's modules anew when they are next asked for."""
    OWN.clear()
    for remembered in (_module, _definition, _signature):
        remembered.cache_clear()


def is_installed(module: str) -> bool:
    """Whether a module is this package's, or of a package of systems."""
    top = module.partition(".")[0]
    return top == PACKAGE or top in roots()


def exists(entry: str) -> bool:
    """Whether there is such a definition ("package.module:name")."""
    module, _, name = entry.partition(":")
    return _path(module) is not None and _defines(module, name)


def locate(dotted: str) -> str:
    """Return the present dotted name of a definition that may have moved since `dotted` was written down.

    Looks in the same sub-package, and in the systems' packages, for a file that defines the name.  Returns `dotted`
    itself if there is none.
    """
    module, _, name = dotted.partition(":")
    path = _path(module)
    if (path and name in _module(module).definitions) or not module.startswith(f"{PACKAGE}."):
        return dotted
    folders = {ROOT / module.split(".")[1]: ROOT} | {root: root for root in roots().values()}
    for folder, root in folders.items():
        for file in sorted(folder.rglob("*.py")):
            if re.search(rf"^(class|def) {re.escape(name)}\b", file.read_text(), re.MULTILINE):
                top = PACKAGE if root == ROOT else root.name
                return f"{'.'.join([top, *file.relative_to(root).with_suffix('').parts])}:{name}"
    return dotted


def without_modules(text: str) -> str:
    """Replace dotted names of definitions of this package, and of systems, in a text by their bare names."""
    return _dotted().sub(lambda match: match[2] or (match[0] if match[1] is None else match[1] or MODULE), text)


@cache
def _dotted() -> re.Pattern[str]:
    """package.module:name of a package that is followed, and system:name."""
    followed, systems = "|".join([PACKAGE, *roots()]), "|".join(packages()) or "(?!)"
    return re.compile(rf"\b(?:{followed})(?:\.\w+)+(?::(\w*))?|\b(?:{systems}):(\w+)")


@cache
def _signature(place: Place) -> str:
    """Hash of a definition and of the definitions that it uses, so that graphs with other edges differ."""
    text, used = _definition(place)
    neighbours = sorted(_definition(each)[0] for each in used)
    return hashlib.sha256("\0".join([text, *neighbours]).encode()).hexdigest()


@cache
def _definition(place: Place) -> tuple[str, tuple[Place, ...]]:
    """Text of a definition, in which names of definitions stand without their modules, and what it uses."""
    module, name = place
    source = _module(module)
    if name == "":
        return MODULE, tuple((module, each) for each in source.definitions)
    if name not in source.definitions:
        raise UndefinedError(f"{module} defines no '{name}'")
    statements = [_text(module, source, s) for s in (*source.definitions[name], *source.loose)]
    return "\n".join(text for text, _ in statements), tuple(sorted(set().union(*(used for _, used in statements))))


def _text(module: str, source: _Module, statement: ast.stmt) -> tuple[str, set[Place]]:
    """Text of a statement, and the definitions that it uses; rewrites the statement, so once for each."""
    if statement not in source.texts:
        references = _References(module, source, statement)
        source.texts[statement] = ast.unparse(references.visit(statement)), references.used
    return source.texts[statement]


def _resolve(place: Place) -> Place:
    """Follow re-exports to the module that defines the name."""
    module, name = place
    source = _module(module)
    if name and name in source.imports and name not in source.definitions:
        return _resolve(source.imports[name])
    return place


class _References(ast.NodeTransformer):
    """Replaces what refers to a definition by the definition's name, and remembers which definitions these are."""

    def __init__(self, module: str, source: _Module, statement: ast.stmt) -> None:
        self._module, self._source, self._imports = module, source, dict(source.imports)
        self.used: set[Place] = set()
        self._numbers = {name: f"${number}" for number, name in enumerate(_variables(statement))}
        for node in ast.walk(statement):  # imports inside functions
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._imports.update(_imported(node, module))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name):
            target = self._imports.get(node.value.id)
            if target and target[1] == "" and _defines(target[0], node.attr):
                return self._name((target[0], node.attr), node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._source.definitions:
            return self._name((self._module, node.id), node)
        if node.id in self._imports:
            return self._name(self._imports[node.id], node)
        return ast.copy_location(ast.Name(self._numbers.get(node.id, node.id), node.ctx), node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        match = _dotted().fullmatch(node.value) if isinstance(node.value, str) else None
        if match and (match[2] or _path(match[0].partition(":")[0])):
            return ast.copy_location(ast.Constant(match[2] or match[1] or MODULE), node)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """As a call with its parts: Python 3.12 has other quotes than 3.11, and an empty part more."""
        parts = [part for part in node.values if getattr(part, "value", None) != ""]
        return ast.Call(ast.Name("f"), [self.visit(part) for part in parts], [])

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        parts = [node.value, ast.Constant(node.conversion), node.format_spec or ast.Constant(None)]
        return ast.Call(ast.Name("f"), [self.visit(part) for part in parts], [])

    def _import(self, node: ast.Import | ast.ImportFrom) -> ast.AST | None:
        return None if _imported(node, self._module) else node

    visit_Import = visit_ImportFrom = _import

    def _name(self, place: Place, node: ast.expr) -> ast.AST:
        place = _resolve(place)
        self.used.add(place)
        return ast.copy_location(ast.Name(place[1] or MODULE, getattr(node, "ctx", ast.Load())), node)


def _defines(module: str, name: str) -> bool:
    source = _module(module)
    return name in source.definitions or name in source.imports


def _path(module: str) -> Path | None:
    """The file of a module of this package, of a system's, or of a user's own module; found without importing it."""
    top = module.partition(".")[0]
    return _file(module, ROOT if top == PACKAGE else roots().get(top) or _own_root(top, tuple(sys.path)))


@cache
def _file(module: str, root: Path | None) -> Path | None:
    """The file of a module whose top level lies there."""
    parts = module.split(".")[1:]
    if root is None or root.is_file():
        return root if not parts else None
    stems = [root.joinpath(*parts)]
    if parts[:2] == ["pipeline", "papers"]:  # which may lie in other folders too
        folders = importlib.import_module(f"{PACKAGE}.pipeline.papers").__path__
        stems += [Path(folder).joinpath(*parts[2:]) for folder in folders]
    files = (path for stem in stems for path in (stem / "__init__.py", stem.with_name(stem.name + ".py")))
    return next((path for path in files if path.is_file()), None)


@cache
def _own_root(package: str, _searched: tuple[str, ...]) -> Path | None:
    """The folder, or the file, of a user's top-level module: one outside Python's library and site-packages.

    What is not in the folders that were searched may be in those that are searched later.
    """
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None or (spec.origin and not spec.origin.endswith(".py")):
        return None
    place = next(iter(spec.submodule_search_locations or ()), spec.origin)
    path = Path(place).resolve() if place else None
    if path is None or INSTALLED & set(path.parts):  # also those of another environment, which this one may see
        return None
    installed = re.compile(rf"^{re.escape(path.name)}[/,]", re.MULTILINE)
    if any(installed.search(record.read_text()) for record in path.parent.glob("*.dist-info/RECORD")):
        return None  # by `pip install --target`
    libraries = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
    return None if libraries & set(path.parents) else path


def _imported(node: ast.Import | ast.ImportFrom, module: str) -> dict[str, Place]:
    """Local names that an import of this package, or of a user's module, binds in a module.

    Raises NeurouteError for an import that binds no name of what it imports.
    """
    bound: dict[str, Place] = {}
    if isinstance(node, ast.Import):
        for alias in node.names:
            if _path(alias.name) is not None:
                if alias.asname is None and "." in alias.name:
                    raise NeurouteError(
                        f"{_path(module)}, line {node.lineno}: `import {alias.name}` cannot be followed; write "
                        f"`from ... import ...` or `import {alias.name} as ...`"
                    )
                bound[alias.asname or alias.name] = (alias.name, "")
        return bound
    file = _path(module)
    package = module if file and file.name == "__init__.py" else module.rpartition(".")[0]
    source = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
    if _path(source) is not None:
        for alias in node.names:
            is_module = _path(f"{source}.{alias.name}") is not None
            place = (f"{source}.{alias.name}", "") if is_module else (source, alias.name)
            bound[alias.asname or alias.name] = place
    return bound


@cache
def _module(name: str) -> _Module:
    path = _path(name)
    if path is None:
        raise UndefinedError(f"no module {name}")
    module, text = _Module(), path.read_bytes()
    if not is_installed(name):
        OWN[name] = path, text
    for raw in ast.parse(text).body:
        statement = _Behaviour().visit(raw)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            module.imports.update(_imported(statement, name))
        elif names := _bound_names(statement):
            for bound in names:
                module.definitions.setdefault(bound, []).append(statement)
        else:
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            # `if TYPE_CHECKING:` never runs
            is_for_types = isinstance(statement, ast.If) and ast.unparse(statement.test).endswith("TYPE_CHECKING")
            if not (is_text or is_for_types):
                module.loose.append(statement)
    return module


def _bound_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [statement.name]
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    return [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]


def _variables(statement: ast.stmt) -> list[str]:
    """List the names that the functions in a statement bind, each once; not arguments and fields, which others name."""
    nodes = list(ast.walk(statement))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    bound = (node for function in functions for node in ast.walk(function) if isinstance(node, ast.Name))
    fields = (_bound_names(each) for node in nodes if isinstance(node, ast.ClassDef) for each in node.body)
    public = {node.arg for node in nodes if isinstance(node, ast.arg)}.union(*fields)
    return list(dict.fromkeys(node.id for node in bound if isinstance(node.ctx, ast.Store) and node.id not in public))


class _Behaviour(ast.NodeTransformer):
    """Drops docstrings, and annotations inside functions, which do not run.

    Class bodies keep their annotations: dataclasses and pydantic read them.
    """

    def __init__(self) -> None:
        self._depth = 0  # of functions around the node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        self._depth += 1
        self._drop_docstring(node)
        self.generic_visit(node)
        self._depth -= 1
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _function

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        depth, self._depth = self._depth, 0
        self._drop_docstring(node)
        self.generic_visit(node)
        self._depth = depth
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if not self._depth:
            return node
        if node.value is None:
            return ast.Pass()
        return ast.copy_location(ast.Assign([node.target], self.visit(node.value)), node)

    @staticmethod
    def _drop_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]


# -- worked out by an earlier process ----------------------------------------------------------------------------------


@cache
def _load_digests() -> dict[str, str]:
    """Digests by entries; new ones are written when the process ends."""
    state, digests = _state(), {}
    with suppress(OSError, ValueError, TypeError, KeyError):
        stored: dict[str, Any] = json.loads(FILE.read_text())
        digests = dict(stored["digests"]) if stored["state"] == state else {}
    before = len(digests)

    def keep() -> None:
        if len(digests) > before and _state() == state:
            with suppress(OSError, NeurouteError):  # as with bytecode: nothing is lost in a folder that is read only
                write_json(FILE, {"state": state, "digests": digests})

    atexit.register(keep)
    return digests


def _state() -> str:
    """Hash of all sources' sizes and times, by names within their folder: a copy of the project has the same."""
    sources = ((str(file.relative_to(folder)), file) for folder in code_folders() for file in folder.rglob("*.py"))
    files = [(name, file.stat().st_mtime_ns, file.stat().st_size) for name, file in sorted(sources)]
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()


def code_folders() -> set[Path]:
    """Return the folders whose code makes results: the package's, those of systems, and of papers."""
    return {ROOT, *roots().values(), *map(Path, importlib.import_module(f"{PACKAGE}.pipeline.papers").__path__)}
