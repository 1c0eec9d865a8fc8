"""Draw the folders of neuroute and the imports between them into docs/architecture.md: `python docs/imports.py`."""

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "neuroute"
PAGE = Path(__file__).with_name("architecture.md")
BEGIN, END = "<!-- drawn by docs/imports.py -->\n```mermaid\n", "```\n<!-- end of the drawing -->"

# From the ground up: a folder imports only folders of lower layers, and modules of its own.
LAYERS = (
    ("core",),
    ("analysis",),
    ("problems",),
    ("solvers", "specs"),
    ("datasets", "networks"),
    ("decoding",),
    ("training", "evaluation"),
    ("api",),
    ("pipeline.plan",),
    ("pipeline.rendering",),
    ("pipeline.papers",),
    ("pipeline.dag",),
    ("pipeline.cli",),
)
Edge = tuple[str, str]  # importing module, imported module, as "folder.file"


def modules() -> dict[str, Path]:
    """Modules in the folders of neuroute by dotted name: plan.build, papers.sit.paper."""
    paths = (path for path in sorted(SOURCE.rglob("*.py")) if path.parent != SOURCE)
    files = (path.relative_to(SOURCE).with_suffix("") for path in paths)
    return {".".join(file.parts).removesuffix(".__init__"): SOURCE / f"{file}.py" for file in files}


class _Running(ast.NodeTransformer):
    """Drops what never runs: `if TYPE_CHECKING:`."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else node


@cache
def imports(*, running: bool = False) -> set[Edge]:
    """All imports between modules of neuroute, those inside functions included; `running`: without those for types."""
    known, edges = modules(), set()
    for module, path in known.items():
        tree = ast.parse(path.read_text())
        for node in ast.walk(_Running().visit(tree) if running else tree):
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                if name.startswith("neuroute."):
                    target = name.removeprefix("neuroute.")
                    edges.add((module, target if target in known else target.rpartition(".")[0]))
    return edges


def folder(module: str) -> str:
    """The folder that a module counts to: one of the library, or of those in pipeline/."""
    return ".".join(module.split(".")[: 2 if module.startswith("pipeline.") else 1])


def layer(module: str) -> int:
    """Number of the layer of a module's folder.  Raises LookupError for a folder that LAYERS does not list."""
    for number, folders in enumerate(LAYERS):
        if folder(module) in folders:
            return number
    raise LookupError(f"folder '{folder(module)}' stands in no layer of docs/imports.py")


def against_the_direction() -> list[Edge]:
    """Imports from a lower layer of a higher one, or between two folders of one layer."""
    return sorted(
        (here, there)
        for here, there in imports()
        if folder(here) != folder(there) and there and here and layer(here) <= layer(there)
    )


def circles(edges: set[Edge]) -> list[str]:
    """Modules that import themselves by way of others."""
    after: dict[str, set[str]] = {}
    for here, there in edges:
        after.setdefault(here, set()).add(there)

    def reached(start: str) -> set[str]:
        waiting, seen = [start], set()
        while waiting:
            for each in after.get(waiting.pop(), set()) - seen:
                seen.add(each)
                waiting.append(each)
        return seen

    return [module for module in sorted(after) if module in reached(module)]


def shown() -> set[tuple[str, str]]:
    """Imports between folders, without those that a longer way implies, so that a drawing can be read."""
    pairs = {(folder(here), folder(there)) for here, there in imports() if folder(here) != folder(there)}
    below = {a: {b for c, b in pairs if c == a} for a, _ in pairs}
    return pairs - {(a, c) for a in below for b in below[a] for c in _all_below(below, b)}


def drawing() -> str:
    """The pipeline above the library, as a Mermaid flow chart."""
    lines = ["flowchart TB"]
    folders = [name for each in reversed(LAYERS) for name in each]
    for group in ("pipeline", "library"):
        lines.append(f"  subgraph {group}")
        lines += [f"    {_name(name)}" for name in folders if name.startswith("pipeline.") == (group == "pipeline")]
        lines.append("  end")
    lines += [f"  {_name(here)} --> {_name(there)}" for here, there in sorted(shown())]
    return "\n".join(lines) + "\n"


def _name(folder: str) -> str:
    return folder.rpartition(".")[2]


def _all_below(below: dict[str, set[str]], name: str) -> set[str]:
    return below.get(name, set()).union(*(_all_below(below, each) for each in below.get(name, set())))


def page_with_drawing() -> str:
    """The text of docs/architecture.md with the drawing as the code has it now."""
    before, rest = PAGE.read_text().split(BEGIN)
    return before + BEGIN + drawing() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page_with_drawing())
