"""Reference pages from the code itself: the command line, config.yaml, scale files, records."""

import json
from typing import Any

import typer
from typer.cli import get_docs_for_click

from neuroute.evaluation import loaded
from neuroute.pipeline.cli import app
from neuroute.pipeline.plan.config import schemas

Schema = dict[str, Any]


def cli() -> str:
    """The page of the command line, by typer."""
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="neuroute")
    for each in command.commands.values():
        each.short_help = (each.help or "").partition("\n\n")[0]  # whole in the list, where typer would cut it
    text: str = get_docs_for_click(obj=command, ctx=context, name="neuroute", title="Command line")
    return text.replace("<=x", "<= x").replace("# `neuroute`", "# Command line", 1)


def config() -> str:
    """The page of config.yaml."""
    schema = schemas()["config"]
    text = (
        "# config.yaml\n\nChoices of the user, one file beside the Snakefile. `neuroute schema` writes the same as a "
    )
    text += "JSON schema, with which editors complete and check. Any key can be given on Snakemake's command line: "
    return text + "`--config scale=laptop`.\n\n" + _keys(schema) + _definitions(schema)


def scales() -> str:
    """The page of scale files."""
    schema = schemas()["scale"]
    text = (
        "# Scale files\n\nOne file a scale in `workflow/scales`; or your own: `scale: my/scale.yaml`. A block a paper, "
    )
    return text + "which a scale may leave out.\n\n" + _keys(schema) + _definitions(schema)


def record_columns() -> str:
    """The page of records."""
    rows = "\n".join(f"| `{column}` | {meaning} |" for column, meaning in _columns().items())
    units = "\n".join(f"| `{metric}` | {unit or 'none'} |" for metric, unit in loaded.UNITS.items())
    return (
        "# Records\n\nAn evaluation writes one tidy CSV, a row for each measured number, to "
        "`work/<scale>/evaluations`; lengths of single instances lie in an `.npz` beside it. Tables and figures read "
        "only these.\n\n"
        f"| column | meaning |\n|---|---|\n{rows}\n\n| metric | unit |\n|---|---|\n{units}\n"
    )


def _columns() -> dict[str, str]:
    meanings = {
        "paper": "key of the paper",
        "run": "the training that made the model",
        "group": "runs that a paper shows together",
        "seed": "of the run",
        "test": "id of the test set",
        "distribution": "of its coordinates",
        "n": "nodes, or customers, of an instance",
        "n_instances": "how many were measured",
        "reference": "solver of the solutions that gaps are against",
        "decoding": "id of how solutions were built",
        "method": "greedy, beam, rrc, prc ...",
        "beam": "beam width",
        "log_n": "whether attention is scaled with log n",
        "batch_size": "instances at once",
        "metric": "what was measured, below",
        "value": "the number",
        "unit": "its unit",
        "device": "what it was measured on",
        "threads": "CPU threads",
        "torch": "version of torch",
        "scale": "the scale",
        "code": "digest of the code that measured",
        "wall_time_s": "seconds of the decoding behind the number",
        "weights": "where they come from, if no training here made them",
        "precision": "of the network's products: fp32 or bf16",
    }
    if missing := set(loaded.COLUMNS) ^ set(meanings):
        raise SystemExit(f"docs/generate/reference.py: say what these columns of records mean: {sorted(missing)}")
    return {column: meanings[column] for column in loaded.COLUMNS}


def _keys(schema: Schema) -> str:
    rows = [
        f"| `{name}` | {_type(of)} | {_default(schema, name, of)} | {_text(of.get('description', ''))} |"
        for name, of in schema.get("properties", {}).items()
    ]
    return "\n".join(["| key | value | default | |", "|---|---|---|---|", *rows]) + "\n\n"


def _definitions(schema: Schema) -> str:
    parts = []
    for name, of in sorted(schema["$defs"].items()):
        first = of.get("description", "").split("\n\n")[0]
        parts.append(f"## {name}\n\n{_text(first)}\n\n" + (_keys(of) if "properties" in of else ""))
    return "".join(parts)


def _type(of: Schema) -> str:
    if "$ref" in of:
        name = of["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in of:
        return ", ".join(f"`{each}`" for each in of["enum"])
    if "const" in of:
        return f"`{of['const']}`"
    if choices := of.get("anyOf") or of.get("oneOf"):
        return " or ".join(dict.fromkeys(_type(each) for each in choices))
    if of.get("type") == "array":
        items = of.get("prefixItems")
        return f"{len(items)} x {_type(items[0])}" if items else f"list of {_type(of.get('items', {}))}"
    if of.get("type") == "object" and isinstance(of.get("additionalProperties"), dict):
        return f"mapping to {_type(of['additionalProperties'])}"
    return f"{of.get('type', 'any')}{_bounds(of)}"


def _bounds(of: Schema) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    found = [f"{sign} {of[key]}" for key, sign in signs.items() if key in of]
    return " " + ", ".join(found) if found else ""


def _default(schema: Schema, name: str, of: Schema) -> str:
    if name in schema.get("required", ()):
        return "required"
    value = of.get("default")
    return "" if value in (None, []) or isinstance(value, dict) else f"`{json.dumps(value)}`"


def _text(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|").replace("<", "&lt;")
