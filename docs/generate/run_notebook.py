"""Run the cells of a notebook and keep what they print: python docs/generate/run_notebook.py FILE [OUT] [OLD=>NEW ...]

In the working folder, without a kernel: cells are plain Python.  Each OLD=>NEW changes the code that runs, not the code
that is kept.
"""

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def run(cells: list[dict[str, Any]], changes: list[tuple[str, str]]) -> None:
    """Put outputs into the cells: printed text, and the last expression as text, table or picture."""
    module = ModuleType("__main__")  # as in a kernel, it has no file
    sys.modules["__main__"] = module
    for number, cell in enumerate(cell for cell in cells if cell["cell_type"] == "code"):
        source = "".join(cell["source"])
        for old, new in changes:
            source = source.replace(old, new)
        tree, printed, value = ast.parse(source), io.StringIO(), None
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, f"cell {number + 1}", "exec"), vars(module))
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), f"cell {number + 1}", "eval"), vars(module))
        cell["execution_count"], cell["outputs"] = number + 1, []
        if text := printed.getvalue():
            cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)})
        if value is not None:
            data: dict[str, Any] = {"text/plain": [repr(value)]}
            if hasattr(value, "_repr_html_") and (html := value._repr_html_()) is not None:  # a figure gives None
                data["text/html"] = html.splitlines(keepends=True)
            if hasattr(value, "_repr_png_"):
                data["image/png"] = base64.b64encode(value._repr_png_()).decode()
            result = {"output_type": "execute_result", "execution_count": number + 1, "metadata": {}, "data": data}
            cell["outputs"].append(result)


if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())  # as in a notebook; this folder has modules with names of others
    notebook, out, *texts = sys.argv[1:] if len(sys.argv) > 2 else [*sys.argv[1:], sys.argv[1]]
    content = json.loads(Path(notebook).read_text())
    pairs = [(old, new) for old, _, new in (text.partition("=>") for text in texts)]
    run(content["cells"], pairs)
    Path(out).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
