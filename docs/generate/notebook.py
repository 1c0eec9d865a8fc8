"""A notebook as a page: its words, its code and, where it holds them, what the code printed and drew."""

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
    parts, shown = [f"```python\n{source}\n```"], ""
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "image/png" in data:
            parts.append(f"![](data:image/png;base64,{''.join(''.join(data['image/png']).split())})")
        else:
            shown += "".join(output.get("text", data.get("text/plain", [])))
    if shown:
        parts.insert(1, f"```text\n{shown.rstrip()}\n```")
    return "\n\n".join(parts)
