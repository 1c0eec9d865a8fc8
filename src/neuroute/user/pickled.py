"""Pickled coordinates without the danger of pickles: plain containers, numbers and numeric arrays, nothing else.

A pickle is a program that may call any function.  Here every name that it asks for is looked up in a short list of
functions of this file, which build arrays from their bytes; numpy's own unpickling is never called.
"""

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError

NUMBERS = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


def read_pickle(path: Path) -> Any:
    """Return the lists, tuples, dicts, numbers and numpy arrays of a pickle.

    Raises NeurouteError if anything else is in it (nothing of it is executed) or the file is damaged.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NeurouteError(f"{path}: no such file") from None
    except OSError as error:
        raise NeurouteError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        return _plain(_Reader(io.BytesIO(data), encoding="latin1").load())
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


def _scalar(dtype: Any, raw: Any) -> float:
    return float(_values(raw, dtype, (), "C"))


def _encode(text: Any, encoding: Any) -> bytes:
    """Python 3 writes bytes this way for readers in Python 2."""
    if encoding != "latin1" or not isinstance(text, str):
        raise _Refused("encoded text")
    return text.encode("latin1")


class _Only:
    """A function that a pickle may call but not change."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

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
    **_numpys("multiarray", "scalar", _scalar),
    **_numpys("numeric", "_frombuffer", lambda *arguments: _Array(values=_values(*arguments))),
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise _Refused(f"'{module}.{name}'"[:80])
        return ALLOWED[module, name]


def _plain(value: Any) -> Any:
    """Return the value with arrays in the place of their stand-ins."""
    if isinstance(value, _Array):
        if value.values is None:
            raise _Refused("an array without values")
        return value.values
    if isinstance(value, list | tuple):
        return type(value)(_plain(each) for each in value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if value is None or isinstance(value, int | float | str | bytes):
        return value
    raise _Refused(f"a {type(value).__name__}")
