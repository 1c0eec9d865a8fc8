"""YAML files as typed models: what is wrong with one is one clear line."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from neuroute.core.errors import NeurouteError, did_you_mean, near

M = TypeVar("M", bound=BaseModel)
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml, where it is there, is ten times as fast
_EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")
_OTHERWISE = re.compile(r"[-+]?0[0-7_]+|[-+]?\d[\d_]*(:\d+)+(\.\d*)?")  # 010 is 8 to YAML, 1:30 is 90


def read_yaml(path: Path) -> dict[str, Any]:
    """A mapping.  Raises NeurouteError if there is no such file or it is none."""
    try:
        values = parse_yaml(path.read_bytes())  # of UTF-8, whatever the locale
    except FileNotFoundError:
        if path.name == "config.yaml" and not path.with_name("Snakefile").is_file():
            raise NeurouteError(f"{path}: no such file; {how_to_get_there()}") from None
        others = [other.name for other in path.parent.glob("*.yaml")]
        raise NeurouteError(f"{path}: no such file{did_you_mean(near(path.name, others))}") from None
    except OSError as error:
        raise NeurouteError(f"{path}: cannot be read ({error.strerror})") from None
    except yaml.YAMLError as error:
        raise NeurouteError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise NeurouteError(f"{path}: expected a mapping of keys to values")
    return values


def how_to_get_there() -> str:
    """Say where the Snakefile is: in the checkout that this package lies in, else where `init` puts it."""
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "Snakefile").is_file():
        return f"run from the folder of the Snakefile: cd {checkout}"
    return "run from the folder of the Snakefile, which `neuroute init my-study` makes"


def parse_yaml(text: str | bytes) -> Any:
    """What a text says.

    Raises yaml.YAMLError, also for a key that comes twice, of which yaml would take the last, and for 010 and 1:30,
    which it would take for 8 and 90.
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        _check_keys(node, set())
        return None if node is None else with_exponents(loader.construct_document(node))
    finally:
        loader.dispose()


def with_exponents(values: Any) -> Any:
    """Take 1e2 for a number, which YAML 1.1 has as text."""
    if isinstance(values, Mapping):
        return {key: with_exponents(value) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [with_exponents(value) for value in values]
    return float(values) if isinstance(values, str) and _EXPONENT.fullmatch(values) else values


def _check_keys(node: yaml.Node | None, checked: set[int]) -> None:
    is_number = isinstance(node, yaml.ScalarNode) and node.tag.endswith((":int", ":float"))
    if node is not None and is_number and _OTHERWISE.fullmatch(node.value):
        line = node.start_mark.line + 1
        raise yaml.YAMLError(f"line {line}: {node.value} is another number to YAML; write it plainly, text in quotes")
    if id(node) in checked or not isinstance(node, yaml.CollectionNode):  # an anchor's node stands in several places
        return
    checked.add(id(node))
    keys = set[str]()
    for each in node.value:
        for part in each if isinstance(each, tuple) else (each,):
            _check_keys(part, checked)
        if isinstance(each, tuple) and isinstance(key := each[0], yaml.ScalarNode):
            if key.value in keys:
                line = key.start_mark.line + 1
                raise yaml.YAMLError(f"line {line}: key '{key.value}' comes twice; merge the two")
            keys.add(key.value)


def set_key(values: dict[str, Any], change: str) -> None:
    """Change a key of nested mappings, as in `runs.scaling/base_6x128.seed=1`; the value is YAML.

    Raises NeurouteError if it is no key=value, or if a value stands where a mapping is needed.
    """
    path, sign, text = change.partition("=")
    keys: list[Any] = [int(key) if key.isdigit() else key for key in path.strip().split(".")]
    if not sign or "" in keys:
        raise NeurouteError(f"--set {change}: write key=value, as in runs.scaling/base_6x128.seed=1")
    try:
        value = parse_yaml(text)
    except yaml.YAMLError:
        raise NeurouteError(f"--set {change}: its value is no YAML; quote it") from None
    put(values, keys, value, f"--set {change}")


def put(values: dict[str, Any], keys: Sequence[Any], value: Any, what: str) -> None:
    """Put a value under a path of keys; mappings on the way are copied.

    Raises NeurouteError, of `what`, if a value stands where a mapping is needed.
    """
    for key in keys[:-1]:
        below = values.get(key)
        if not isinstance(below, dict | None):
            raise NeurouteError(f"{what}: {key} is {below}, not a mapping; give it keys")
        values[key] = dict(below or {})
        values = values[key]
    values[keys[-1]] = value


def validate(kind: type[M], values: Any, where: str, key: str = "", see: str = "workflow/schemas") -> M:
    """`values`, which lie under `key` of a file, as a model; `see` says where a reader learns what is allowed.

    Raises NeurouteError that names `where` and the first wrong key.
    """
    try:
        model = kind.model_validate(values)
    except ValidationError as error:
        detail = error.errors()[0]
        dotted = ".".join(str(p) for p in (key, *detail["loc"]) if p not in ("", "[key]"))
        message = detail["msg"].removeprefix("Value error, ")
        if detail["type"] == "extra_forbidden":
            name, schema = str(detail["loc"][-1]), kind.model_json_schema()
            names = list(_keys(schema))
            meant = did_you_mean(near(name, names, most=1))
            message = (
                f"does not exist here; it is a key {_place(schema, name)}" if name in names else f"unknown key{meant}"
            )
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        text = f"{where}: {dotted or 'top level'}: {message}{more}"
        raise NeurouteError(f"{text}{'' if text.endswith('?') else ';'} see {see} for what is allowed") from None
    for path, value in _switches_for_numbers(values, model, key):
        raise NeurouteError(
            f"{where}: {path}: {str(value).lower()}, where a number is needed; see {see} for what is allowed"
        )
    return model


def _switches_for_numbers(values: Any, taken: Any, path: str) -> Iterator[tuple[str, bool]]:
    """Yield where `true` or `false` was taken for a number."""
    if isinstance(values, bool) and isinstance(taken, int | float) and not isinstance(taken, bool):
        yield path, values
    elif isinstance(values, Mapping):
        for key, value in values.items():
            below = taken.get(key) if isinstance(taken, Mapping) else getattr(taken, str(key), None)
            yield from _switches_for_numbers(value, below, f"{path}.{key}".strip("."))
    elif isinstance(values, list | tuple) and isinstance(taken, list | tuple):
        for i, (value, below) in enumerate(zip(values, taken, strict=False)):
            yield from _switches_for_numbers(value, below, f"{path}.{i}")


def _keys(schema: Any) -> Iterator[str]:
    """The names of all fields, whichever model within has them."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for part in schema.values():
            yield from _keys(part)


def _place(schema: dict[str, Any], name: str) -> str:
    """Say below which keys the models with this field are."""
    models = schema.get("$defs", {})
    having = [f'"#/$defs/{model}"' for model, its in models.items() if name in its.get("properties", {})]
    above = {
        key
        for model in (schema, *models.values())
        for key, its in model.get("properties", {}).items()
        if any(reference in json.dumps(its) for reference in having)
    }
    return f"below {' or '.join(f'`{key}`' for key in sorted(above))}" if above else "of the top level"
