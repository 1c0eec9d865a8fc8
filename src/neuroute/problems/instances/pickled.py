"""Pickled coordinates without the danger of pickles: plain containers, numbers and numeric arrays, nothing else.

A pickle is a program that may call any function.  Here every name that it asks for is looked up in a short list of
functions of this file, which build arrays from their bytes; numpy's own unpickling is never called.
"""

import io
import pickle
import pickletools
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_bytes

NUMBERS = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
PLAIN_TYPES = {int, float, bool}
MOST = 10_000_000  # numbers and lists, counted as often as they are named, of files with fewer bytes


def read_pickle(path: Path) -> Any:
    """Return the lists, tuples, dicts, numbers and numpy arrays of a pickle.

    Raises NeurouteError if anything else is in it (nothing of it is executed) or the file is damaged.
    """
    data = read_bytes(path)
    try:
        _check_claims(data)
        value, _ = _plain(_Reader(io.BytesIO(data), encoding="latin1").load(), {}, max(MOST, len(data)))
        return value
    except _Refused as error:
        raise NeurouteError(
            f"{path}: holds {error}; only lists of numbers and numpy arrays are read, save those (or an .npz)"
        ) from None
    except Exception as error:  # a damaged pickle can end in nearly any exception
        raise NeurouteError(f"{path}: not a readable pickle ({type(error).__name__}); save it again") from None


class _Refused(Exception):
    """The pickle asks for something that is not allowed."""


class _Array:
    """Stands for an array (or, empty at first, its dtype) while the pickle is read; numpy fills in its state."""

    def __init__(self, kind: str = "", values: np.ndarray | None = None) -> None:
        self.kind = kind  # without byte order, e.g. f8
        self.order = "<"
        self.values = values

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple):
            raise _Refused("an array in an unknown form")
        if self.kind:  # of a dtype: (version, byte order, ...)
            self.order = {">": ">"}.get(state[1], "<")
        else:  # of an array: (version, shape, dtype, column order, bytes)
            _, shape, dtype, column_order, raw = state
            self.values = _values(raw, dtype, shape, "F" if column_order else "C")


def _values(raw: Any, dtype: Any, shape: Any, order: str) -> np.ndarray:
    if isinstance(raw, str):  # Python 2's bytes
        raw = raw.encode("latin1")
    if not isinstance(dtype, _Array) or not isinstance(raw, bytes | bytearray):
        raise _Refused("an array of objects")
    return np.frombuffer(raw, dtype.order + dtype.kind).reshape(shape, order="F" if order == "F" else "C")


def _dtype(text: Any, *_: Any) -> _Array:
    if text not in NUMBERS:
        raise _Refused(f"an array of type {text!r:.20}")
    return _Array(kind=text)


def _encode(text: Any, encoding: Any) -> bytes:
    """Python 3 writes bytes this way for readers in Python 2."""
    if encoding != "latin1" or not isinstance(text, str):
        raise _Refused("encoded text")
    return text.encode("latin1")


class _Only(partial[Any]):
    """A function that a pickle may call but not change."""

    def __setstate__(self, state: Any) -> None:
        raise _Refused("a changed function")


def _numpys(module: str, name: str, function: Callable[..., Any]) -> dict[tuple[str, str], _Only]:
    """Return the function under the names of numpy 2 (`_core`) and before."""
    return {(f"numpy.{core}.{module}", name): _Only(function) for core in ("_core", "core")}


ALLOWED = {
    ("numpy", "ndarray"): _Only(_Array),
    ("numpy", "dtype"): _Only(_dtype),
    ("_codecs", "encode"): _Only(_encode),
    **_numpys("multiarray", "_reconstruct", lambda *_: _Array()),
    **_numpys("multiarray", "scalar", lambda dtype, raw: float(_values(raw, dtype, (), "C"))),
    **_numpys("numeric", "_frombuffer", lambda *arguments: _Array(values=_values(*arguments))),
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise _Refused(f"'{module}.{name}'"[:80])
        return ALLOWED[module, name]


def _plain(value: Any, by_id: dict[int, tuple[Any, int]], most: int) -> tuple[Any, int]:
    """Return the value with arrays in the place of their stand-ins, and how many values that is.

    What is named several times is made once; `by_id` holds it.  Refuses more values than `most`: a few lists
    that name each other make any number.
    """
    if value is None or isinstance(value, int | float):
        return value, 1
    if isinstance(value, list | tuple) and PLAIN_TYPES.issuperset(map(type, value)):
        return value, len(value) + 1
    if id(value) in by_id:
        return by_id[id(value)]
    if isinstance(value, _Array):
        if value.values is None:
            raise _Refused("an array without values")
        result: tuple[Any, int] = value.values, value.values.size + 1
    elif isinstance(value, list | tuple):
        parts, size = [], 1
        for each in value:
            part, count = _plain(each, by_id, most)
            parts.append(part)
            size += count
            if size > most:
                raise _Refused(f"more than {most:,} values, most of them the same ones")
        result = type(value)(parts), size
    else:
        raise _Refused(f"a {type(value).__name__}")
    by_id[id(value)] = result
    return result


def _check_claims(data: bytes) -> None:
    """Raises _Refused for what would take more memory than the file has bytes: long texts, and places in the memo.

    The unpickler makes room for what is announced before it looks whether it is there.
    """
    place = 0
    while True:
        while steps := PLAIN.match(data, place):
            place = steps.end()
        code = data[place : place + 1]
        if code == pickle.PUT:
            raise _Refused("PUT with a large number")
        if code not in SIZED:
            return  # the end, or damage, which the unpickler names
        width = SIZED[code]
        announced = int.from_bytes(data[place + 1 : place + 1 + width], "little")
        if announced > len(data):
            raise _Refused(f"{NAMES[code]} of {announced:,}, beyond its own end")
        place += 1 + width + (announced if code != pickle.LONG_BINPUT else 0)


def _pattern(op: pickletools.OpcodeInfo) -> bytes | None:
    """Return what one step of a pickle looks like; None: it announces a size."""
    code = re.escape(op.code.encode("latin1"))
    if op.code == "p":
        return code + rb"[0-9]{1,7}\n"
    if op.arg is None or op.arg.n >= 0:
        return None if op.code in "r." else code + b".{%d}" % (op.arg.n if op.arg else 0)
    if op.arg.n == pickletools.UP_TO_NEWLINE:
        return code + rb"[^\n]*\n" * (2 if op.code in "ci" else 1)
    return None


# code -> bytes of the size, or of the place, that it announces
WIDTHS = {pickletools.TAKEN_FROM_ARGUMENT1: 1, pickletools.TAKEN_FROM_ARGUMENT8U: 8}
SIZED = {
    op.code.encode("latin1"): WIDTHS.get(op.arg.n, 4)
    for op in pickletools.opcodes
    if op.arg is not None and (op.code == "r" or op.arg.n < pickletools.UP_TO_NEWLINE)
}
NAMES = {op.code.encode("latin1"): op.name for op in pickletools.opcodes}
# Some steps at a time, which bounds the memory of matching; Python 3.11.2 steps back out of `*+`, wrongly.
PLAIN = re.compile(b"(?:" + b"|".join(filter(None, map(_pattern, pickletools.opcodes))) + b"){1,1000}", re.DOTALL)
