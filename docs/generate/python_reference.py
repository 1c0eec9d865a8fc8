"""The page of the Python interface: signatures and docstrings of what users import."""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

EXAMPLE = """# Python

```python
import neuroute

instance = neuroute.load("berlin52.tsp")
solution = neuroute.solve(instance, seconds=10)
print(solution)
solution.plot("berlin52.svg")
```
"""
SECTIONS = {
    "Instances and solutions": (
        "neuroute:load", "neuroute:load_all", "neuroute:generate", "neuroute:Instance", "neuroute:solve",
        "neuroute:methods", "neuroute:Solution",
    ),
    "Models and measurements": (
        "neuroute:models", "neuroute:load_model", "neuroute:Card", "neuroute:Model", "neuroute:Decoding",
        "neuroute:evaluate", "neuroute:Evaluation", "neuroute:compare", "neuroute:Comparison",
    ),
    "Training": (
        "neuroute:train", "neuroute:Trainer", "neuroute:Callback", "neuroute:Progress", "neuroute:StopEarly",
        "neuroute.training.own_loss", "neuroute:NeurouteError",
    ),
    "Networks of your own": ("neuroute.networks.base",),
    "Papers of your own": (
        "neuroute.pipeline.plan.paper:Paper", "neuroute.pipeline.plan.needs", "neuroute.pipeline.rendering.grid",
        "neuroute.pipeline.rendering.table",
    ),
}  # fmt: skip
BESIDE = {  # what a package beside this one may import, besides `neuroute` and `neuroute.api`
    "neuroute.analysis": "bootstrap intervals, paired differences, fits",
    "neuroute.core": "one-line errors, whole files, devices, dotted names, digests of code, limited processes",
    "neuroute.networks.base": "the class of all networks",
    "neuroute.pipeline.cli.options": "options of commands; config.yaml and the finished runs that they choose",
    "neuroute.pipeline.papers": "the package of papers, whose `__path__` has the folders of `papers_path`",
    "neuroute.pipeline.rendering.style": "figures in one style",
    "neuroute.pipeline.rendering.sweeps": "the figure of a sweep",
    "neuroute.pipeline.rendering.table": "tables as CSV, Markdown, LaTeX and HTML",
    "neuroute.specs.data": "`Spec`, a model that refuses unknown keys",
}
HEADS = r"(Args|Attributes|Raises|Returns|Yields|Example|Examples):"


def page() -> str:
    """The page, a section a heading, with an entry for each name and for the public names of a module."""
    parts = [EXAMPLE]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        if title == "Training":
            parts.append("How it is used: [Bring your own network](../how-to/own_network.md#from-python).\n")
        for dotted in names:
            module, _, name = dotted.partition(":")
            parts += _entry(f"{module}.{name}", getattr(import_module(module), name)) if name else _module(module)
    parts.append("## Packages beside this one\n")
    parts.append("`extras/compare` imports `neuroute`, `neuroute.api`, and these modules:\n")
    parts += ["| module | what it has |", "|---|---|", *(f"| `{name}` | {what} |" for name, what in BESIDE.items())]
    return "\n".join([*parts, ""])


def _module(name: str) -> Iterator[str]:
    module = import_module(name)
    yield f"### `{name}`\n\n{_docstring(module)}"
    for key, value in vars(module).items():
        own = inspect.isclass(value) or inspect.isfunction(value)
        if own and value.__module__ == name and not key.startswith("_"):
            yield from _entry(f"{name}.{key}", value)


def _entry(name: str, value: Any) -> Iterator[str]:
    """Heading, signature and docstring of a function or class; of a class its public methods, too."""
    yield f"### `{name}`\n\n{_signature(value.__name__, value)}{_docstring(value)}"
    if inspect.isclass(value):
        for key, member in vars(value).items():
            function = getattr(member, "__func__", member)
            if key.startswith("_") or not function.__doc__:
                continue
            if isinstance(function, property):
                yield f"**`{key}`** {_docstring(function)}"
            elif inspect.isfunction(function):
                yield f"**`{key}`**\n\n{_signature(key, function)}{_docstring(function)}"


def _signature(name: str, value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [
        p for p in signature.parameters.values() if p.name not in ("self", "cls") and not p.name.startswith("_")
    ]
    text = re.sub(r"0x[0-9a-f]+", "...", str(signature.replace(parameters=parameters)))
    text = re.sub(r"(?<=: |> )'([^']*)'", r"\1", text)  # annotations of modules that postpone them
    text = re.sub(r"\b(?:neuroute|torch|collections|typing|pathlib)\.(?:\w+\.)*(?=\w)", "", text)
    return f"```python\n{name}{text}\n```\n\n"


def _docstring(value: Any) -> str:
    """A docstring as Markdown: its sections as lists."""
    lines, section = list[str](), ""
    for line in inspect.cleandoc(value.__doc__ or "").splitlines():
        if head := re.fullmatch(HEADS, line):
            section = head[1]
            lines += [f"*{section}*", ""]
        elif section and (item := re.fullmatch(r" {4}(\*{0,2}\w+)(?: \(.*?\))?: (.*)", line)):
            lines.append(f"* `{item[1]}`: {item[2]}")
        elif section and line.startswith(" " * 4):
            lines.append("  " + line.strip() if lines[-1].startswith(("*", "  ")) else line.strip())
        else:
            section = "" if line else section
            lines.append(line)
    return "\n".join(lines).rstrip() + "\n"
