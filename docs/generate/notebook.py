"""A notebook as a page: its words, its code and, where it holds them, what the code printed."""

import json
from pathlib import Path
from typing import Any


def page(file: Path) -> str:
    """The Markdown of a notebook, with a link to the notebook itself."""
    cells = json.loads(file.read_text())["cells"]
    link = f"\n\nThis page as a notebook: [{file.name}](<{file.name}>).\n"
    title, *others = [_cell(cell) for cell in cells]
    return "\n\n".join([title + link, *others]) + "\n"


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return source
    printed = "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
    return f"```python\n{source}\n```" + (f"\n\n```text\n{printed.rstrip()}\n```" if printed else "")
