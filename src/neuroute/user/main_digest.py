"""Code digests where a class may lie in a notebook, or in the script that runs, whose module cannot be parsed."""

import hashlib
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from neuroute.plan.digest import exists
from neuroute.plan.known_digests import code_digest

MAIN = "__main__:"


def digest_of(*entries: str) -> str:
    """Return `code_digest` of the entries; of those in `__main__` by what is compiled of them and of what they use.

    Raises LookupError if an entry does not exist.
    """
    own_entries = [entry for entry in entries if entry.startswith(MAIN)]
    if not own_entries:
        return code_digest(*entries)
    texts = sorted(set(_texts([entry.removeprefix(MAIN) for entry in own_entries])))
    others = [entry for entry in entries if entry not in own_entries]
    whole = "\n".join([*texts, code_digest(*others) if others else ""])
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _texts(waiting: list[str]) -> Iterator[str]:
    """Yield names and compiled texts of definitions of the main module, and of those of it that they name."""
    names = vars(sys.modules["__main__"])
    names_met: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in names:
            raise LookupError(f"__main__ defines no '{name}'")
        if name not in names_met:
            names_met.add(name)
            text, uses = _describe(names[name])
            yield f"{name} {text}"
            waiting += [use for use in uses if use in names]


def _describe(value: Any) -> tuple[str, set[str]]:
    """Return what a value is, as text, and the names that it uses."""
    if isinstance(value, CodeType):
        parts = [_describe(each) for each in value.co_consts if isinstance(each, CodeType)]
        plain = [repr(each) for each in value.co_consts[1:] if not isinstance(each, CodeType)]  # the first: a docstring
        text = f"{value.co_code.hex()} {value.co_names} {plain} {[text for text, _ in parts]}"
        return text, set(value.co_names).union(*(uses for _, uses in parts))
    if isinstance(value, FunctionType | type) and value.__module__ != "__main__":
        entry = f"{value.__module__}:{value.__qualname__}"
        return (code_digest(entry) if exists(entry) else entry), set()
    if isinstance(value, FunctionType):
        return _describe(value.__code__)
    if isinstance(value, type):
        members = sorted(
            (k, v) for k, v in vars(value).items() if isinstance(v, FunctionType) or not k.startswith("__")
        )
        described = [(name, *_describe(getattr(each, "__func__", each))) for name, each in members]
        bases = {base.__name__ for base in value.__bases__}
        return str([(name, text) for name, text, _ in described]), bases.union(*(uses for *_, uses in described))
    if isinstance(value, tuple):
        return str([_describe(each)[0] for each in value]), set()
    return (repr(value) if isinstance(value, int | float | str | None) else type(value).__name__), set()
