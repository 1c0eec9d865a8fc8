"""Code digests: what a stage's code *does*, as one hash, so that edits rerun exactly what depends on them.

Snakemake sees config through params and files through inputs, but not edits in an imported package.  Each stage
therefore carries a digest of the definitions that its entry point can reach: functions, classes and module-level
values of this package, followed by name through imports.  Comments, docstrings, formatting, types inside functions
and definitions that are not reached do not count.  What is addressed by a dotted name at run time (a network, an
artifact's function) is given as a further entry.
"""

import ast
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PACKAGE = "neuroute"
ROOT = Path(__file__).resolve().parents[1]
Place = tuple[str, str]  # (module, name of a top-level definition)


@dataclass
class _Module:
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, Place] = field(default_factory=dict)  # local name -> where it comes from; name "" is a module
    loose: list[ast.stmt] = field(default_factory=list)  # statements that bind no name but run at import


def code_digest(*entries: str) -> str:
    """Hash of everything in this package that the entries ("package.module:name") reach."""
    texts = {place: _definition(*place)[0] for place in reach(entries)}
    joined = "\n".join(f"{module}:{name}\n{text}" for (module, name), text in sorted(texts.items()))
    return hashlib.sha256(joined.encode()).hexdigest()[:16]


def reach(entries: Iterable[str]) -> set[Place]:
    """All definitions that the entries reach."""
    waiting: list[Place] = []
    for entry in entries:
        module, _, name = entry.partition(":")
        waiting.append((module, name))
    seen: set[Place] = set()
    while waiting:
        place = waiting.pop()
        if place not in seen:
            seen.add(place)
            waiting.extend(_definition(*place)[1])
    return seen


@cache
def _definition(module: str, name: str) -> tuple[str, tuple[Place, ...]]:
    """Text of a definition without comments and docstrings, and the definitions that it uses."""
    source = _module(module)
    if name == "":  # the module as a whole
        return "", tuple((module, each) for each in source.definitions)
    if name in source.imports and name not in source.definitions:  # re-exported
        return "", (source.imports[name],)
    statements = source.definitions.get(name)
    if statements is None:
        raise LookupError(f"{module} defines no '{name}'")
    statements = [*statements, *source.loose]
    used: set[Place] = set()
    for statement in statements:
        used |= _used(statement, module, source)
    return "\n".join(ast.unparse(s) for s in statements), tuple(sorted(used))


def _used(statement: ast.stmt, module: str, source: _Module) -> set[Place]:
    imports = dict(source.imports)
    for node in ast.walk(statement):  # imports inside functions
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.update(_imported(node))
    used: set[Place] = set()
    whole = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            target = imports.get(node.value.id)
            if target and target[1] == "" and node.attr in _module(target[0]).definitions:
                used.add((target[0], node.attr))
                whole.add(id(node.value))
        elif isinstance(node, ast.Name) and id(node) not in whole:
            if node.id in source.definitions:
                used.add((module, node.id))
            elif node.id in imports:
                used.add(imports[node.id])
    return used


@cache
def _path(module: str) -> Path | None:
    """Where a module of this package lies; found without importing anything."""
    package, *parts = module.split(".")
    if package != PACKAGE:
        return None
    stem = ROOT.joinpath(*parts)
    return next((p for p in (stem / "__init__.py", stem.with_name(stem.name + ".py")) if p.is_file()), None)


def _imported(node: ast.Import | ast.ImportFrom) -> dict[str, Place]:
    """Local names that an import of this package binds."""
    bound: dict[str, Place] = {}
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] == PACKAGE:
                if alias.asname is None:
                    raise ValueError(f"write `from ... import ...` or `import {alias.name} as ...`")
                bound[alias.asname] = (alias.name, "")
    elif node.level:
        raise ValueError(f"relative import of {node.module}: write `from {PACKAGE}... import ...`")
    elif node.module and node.module.split(".")[0] == PACKAGE:
        for alias in node.names:
            is_module = _path(f"{node.module}.{alias.name}") is not None
            place = (f"{node.module}.{alias.name}", "") if is_module else (node.module, alias.name)
            bound[alias.asname or alias.name] = place
    return bound


@cache
def _module(name: str) -> _Module:
    path = _path(name)
    if path is None:
        raise LookupError(f"no module {name}")
    module = _Module()
    for raw in ast.parse(path.read_text()).body:
        statement = _strip(raw)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            module.imports.update(_imported(statement))
        elif names := _bound_names(statement):
            for bound in names:
                module.definitions.setdefault(bound, []).append(statement)
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
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


def _strip(statement: ast.stmt) -> ast.stmt:
    """Without docstrings, and without the annotations inside functions: they do not run."""
    return _Behaviour().visit(statement)


class _Behaviour(ast.NodeTransformer):
    """Class bodies keep their annotations: dataclasses and pydantic read them."""

    def __init__(self) -> None:
        self._depth = 0  # of functions around the node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        self._depth += 1
        self._without_docstring(node)
        self.generic_visit(node)
        self._depth -= 1
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _function

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        depth, self._depth = self._depth, 0
        self._without_docstring(node)
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
    def _without_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body = node.body[1:] or [ast.Pass()]
