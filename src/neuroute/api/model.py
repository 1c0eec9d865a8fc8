"""A trained network, ready to solve: a shipped one by name, or a checkpoint of any run.

How it builds solutions where nothing is said is one rule for the command line, Python and comparisons.
"""

import hashlib
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dis import get_instructions
from inspect import unwrap
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from neuroute.api import zoo
from neuroute.core import device as devices
from neuroute.core.digest import OWN, PACKAGE, code_digest, exists, forget_own
from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.yaml_files import validate
from neuroute.decoding.environment import ENVIRONMENT
from neuroute.evaluation.flops import per_solution
from neuroute.networks.base import RoutingNetwork
from neuroute.networks.weights import check_weights, is_bundled, load_checkpoint, read_about, save_checkpoint
from neuroute.problems.instances.instance import Instance
from neuroute.problems.longest import SHORTEST
from neuroute.specs.decodings import Decoding, parse_decoding, revise
from neuroute.specs.objects import Network

LONGEST = 50  # stops of a sub-path: longer ones cost more and are improved less often (docs/choices.md)
SOLVES = {"tsp": ("tsp",), "cvrp": ("cvrp",), "vrp": ("vrp", "cvrp")}  # what instances a model of each problem takes


@dataclass(frozen=True)
class Model:
    """A network with its weights, on its device.

    Attributes:
        net: the network.
        about: what its checkpoint says of it: `run`, `network`, ...
        place: its device.
        card: of a shipped one.
        path: of its checkpoint.
    """

    net: RoutingNetwork
    about: Mapping[str, Any]
    place: torch.device
    card: zoo.Card | None = None
    path: Path | None = None

    def __repr__(self) -> str:
        parameters = sum(p.numel() for p in self.net.parameters())
        return (
            f"<Model {self.name}: {type(self.net).__name__}, {self.problem}, {parameters:,} parameters, {self.place}>"
        )

    @property
    def problem(self) -> str:
        """`tsp`, `cvrp` or `vrp`."""
        return self.net.problem

    @property
    def name(self) -> str:
        """Of a shipped network; else the run that trained it."""
        return str(self.about["run"]) if self.card is None else self.card.name

    @property
    def trained_nodes(self) -> tuple[int, int]:
        """The least and the most nodes (customers) of its training; of imported weights, what its network says."""
        spec = self.about.get("spec", {})
        stages = spec.get("training", {}).get("stages", ())
        sizes = [n for stage in stages for n in stage["sizes"]] or [spec.get("n", self.net.train_nodes)]
        return min(sizes), max(sizes)

    def save(self, path: str | Path) -> None:
        """Write its checkpoint (.safetensors), which `load_model`, `neuroute solve` and `compare` read.

        Raises:
            NeurouteError: if the file cannot be written.
        """
        if Path(path).suffix != ".safetensors":
            raise NeurouteError(f"{path}: a checkpoint ends in .safetensors; give it this ending")
        about = dict(self.about)
        if self.card is not None:  # whose decision was checked when it was loaded, so this code is as good as its own
            about["code"] = digest_of(about["network"]["kind"])
        save_checkpoint(Path(path), self.net, about)

    @property
    def source(self) -> str:
        """How `neuroute compare` names it: by a shipped network's name, or its checkpoint.

        Raises:
            NeurouteError: if it has no checkpoint, or its network is of a notebook, where no other process finds it.
        """
        if self.card is not None:
            return self.card.name
        kind = str(self.about["network"]["kind"])
        if kind.startswith("__main__:"):
            raise NeurouteError(f"{self.name}: other processes cannot load {kind}; put its class into a module")
        return str(self.checkpoint) if is_bundled(kind) else f"{kind}={self.checkpoint}"

    @property
    def checkpoint(self) -> Path:
        """The file of its weights.

        Raises:
            NeurouteError: if there is none, or it holds others, as after a later training of the same name.
        """
        if self.path is None:
            raise NeurouteError(f"{self.name}: has no checkpoint; `save` it, and load that")
        tensors, weights = load_file(self.path) if self.path.is_file() else {}, self.net.state_dict()
        if tensors.keys() != weights.keys() or any(
            not torch.equal(tensors[name], weights[name].cpu()) for name in weights
        ):
            raise NeurouteError(
                f"{self.name}: {self.path} changed since it was loaded; `save` this model and load that file"
            )
        return self.path

    @property
    def decoding(self) -> Decoding:
        """How it builds a solution without search (see `default_decoding`)."""
        return default_decoding(self.net)

    def gflops(self, instance: Instance) -> float | None:
        """Return the GFLOPs of a solution without search, all its starts together; None where nothing counts them."""
        how, network = self.decoding, Network.model_validate(self.about["network"])
        if how.method != "greedy":
            return None
        try:
            if not self.net.multi_start:
                return per_solution(network, instance.nodes)["gflops_shrinking"]
            places = ENVIRONMENT.of(self.problem).count_starts(instance.inputs(self.problem), None)
            starts = places if how.starts == "all" else min(how.starts, places)
            return per_solution(network, instance.nodes, starts, shrinks=False)["gflops_shrinking"]
        except NeurouteError:  # a network of another module that cannot be counted
            return None


def load_model(which: str | Path, device: str = "auto", trusted: Collection[str] = ()) -> Model:
    """Load a trained network.

    Args:
        which: the name of a shipped network (`neuroute.models`, or a paper's run such as `scaling/base_6x128`, where
            it comes along), the path of a checkpoint (.safetensors), or
            `module:Net=FILE`, a checkpoint of a network outside this package, which is thereby trusted.
        device: `auto` (a GPU where there is one), `cpu` or `cuda`.
        trusted: kinds of networks outside this package that a checkpoint may name, as "module:Class".  A class in the
            working folder, or elsewhere on the path outside site-packages, needs no trust if its code is that which
            wrote the file: nothing is imported before the digests are compared.

    Raises:
        NeurouteError: if there is no such network, the file is no checkpoint, is of other network code or
            damaged, or its training diverged.
    """
    if not isinstance(which, str | Path):
        raise NeurouteError(
            f"model: {type(which).__name__}; give a Model (`neuroute.train`, `neuroute.load_model`), the name of a "
            "shipped one, or a .safetensors file"
        )
    place = devices.choose(device)
    is_name = isinstance(which, str) and (which in zoo.runs() or (Path(which).name == which and not Path(which).suffix))
    if is_name and not Path(which).is_file():
        path, card = zoo.checkpoint(str(which))
        net, about = load_checkpoint(path)
        zoo.check_decision(net, card)
        return Model(net.to(place), about, place, card, path)
    kind, sign, file = str(which).partition("=")
    is_named = bool(sign) and ":" in kind and not Path(which).is_file()
    path = Path(file if is_named else which)
    if not path.suffix and not path.exists() and (alike := near(str(path), zoo.runs())):
        raise NeurouteError(f"{which}: no such checkpoint{did_you_mean(alike)}")
    net, about = load_checkpoint(path, trusted=(*trusted, *([kind] if is_named else _kind_of_code_here(path))))
    check_weights(path, net, about["run"])
    if about["code"] != digest_of(about["network"]["kind"]):
        raise NeurouteError(
            f"{path}: {about['run']} was written by another version of the network; retrain it, or run `neuroute "
            "import-weights`, if its arithmetic is the same"
        )
    return Model(net.to(place), about, place, path=path)


def _kind_of_code_here(path: Path) -> list[str]:
    """Return the class that a checkpoint names, if the user's own code has it and its digest is that of the file."""
    about = read_about(path)
    kind = str(about["network"]["kind"])
    if kind.startswith(f"{PACKAGE}."):
        return []
    try:
        return [kind] if digest_of(kind) == about["code"] else []
    except (LookupError, SyntaxError):  # UndefinedError, too
        return []


def default_decoding(net: RoutingNetwork) -> Decoding:
    """Return how a network builds a solution without search.

    `multistart` for a network of many starts (POMO, ICAM), else `greedy`.  A network with a way of its own is decoded
    in it.
    """
    if own_method := getattr(net, "own_method", None):
        return Decoding(method=own_method)
    if getattr(net, "blocks", None):
        return revise()
    return Decoding(starts="all") if net.multi_start and not net.single_start else Decoding()


def resolve_decoding(net: RoutingNetwork, decoding: Decoding | str | None) -> Decoding:
    """Return a decoding that may be given by name, None: the default; beams may be of its own way.

    `-x8` and `-images16`: the default of so many images.  Raises NeurouteError for an unknown name.
    """
    if decoding is None:
        return default_decoding(net)
    if isinstance(decoding, str) and (images := re.fullmatch(r"-x8|-images(\d+)", decoding, re.ASCII)):
        how = {"augment": True} if images[1] is None else {"images": int(images[1])}
        return validate(Decoding, default_decoding(net).model_dump() | how, f"decoding of {type(net).__name__}")
    if isinstance(decoding, str):
        decoding = parse_decoding(decoding)
    own_method = getattr(net, "own_method", None)
    if own_method and net.own_beams and decoding.method == "beam":
        return decoding.model_copy(update={"method": own_method})
    return decoding


def search_step(model: Model, n: int) -> Decoding:
    """Return how a search improves solutions of n stops: as a shipped network's card says, else in short pieces."""
    how = Decoding(method="prc", longest=LONGEST)
    if model.card is not None and model.card.decoding.method in ("rrc", "prc"):
        how = model.card.decoding
    if how.longest is None:
        return how
    return how.model_copy(update={"longest": min(how.longest, n) if n >= SHORTEST else None})


def name_of_search(net: RoutingNetwork, seconds: float, has_start: bool) -> str:
    """Return what a search of so many seconds is called: greedy + search; without `greedy` from a given solution."""
    first = [] if has_start else [default_decoding(net).name]
    return " + ".join([*first, *(["search"] if seconds > 0 or has_start else [])])


# -- Code digests where a class may lie in a notebook, or in the script that runs, whose module cannot be parsed

MAIN = "__main__:"


def digest_of(*entries: str) -> str:
    """Return `code_digest` of the entries; of those in `__main__` by what is compiled of them and of what they use.

    Raises LookupError if an entry does not exist, NeurouteError for code that is not what its file says now.
    """
    edited = [(name, file) for name, (file, text) in OWN.items() if file.is_file() and file.read_bytes() != text]
    for name, file in edited:
        if not _is_loaded(name, file):
            raise NeurouteError(f"{file}: edited since it was imported; reload {name}, or start Python anew")
    if edited:
        forget_own()
    own_entries = [entry for entry in entries if entry.startswith(MAIN)]
    if not own_entries:
        return code_digest(*entries)
    texts = sorted(set(_texts([entry.removeprefix(MAIN) for entry in own_entries])))
    others = [entry for entry in entries if entry not in own_entries]
    whole = "\n".join([*texts, code_digest(*others) if others else ""])
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _is_loaded(name: str, file: Path) -> bool:
    """Whether the functions of a module, if it was imported, are those of its file."""
    waiting = [compile(file.read_bytes(), str(file), "exec")]
    for code in waiting:
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]
    of_file = {code.co_qualname: code for code in waiting}
    values = list(vars(sys.modules[name]).values()) if name in sys.modules else []
    values += [each for value in values if isinstance(value, type) for each in vars(value).values()]
    loaded = [unwrap(each).__code__ for each in values if isinstance(each, FunctionType) and each.__module__ == name]
    return all(_describe(code) == _describe(of_file.get(code.co_qualname, code)) for code in loaded)


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
    """Return what a value is, as text, and the global names that it uses."""
    if isinstance(value, CodeType):
        # The first constant of a function is its docstring; what is within <> has none.
        parts = [value.co_code.hex(), *value.co_consts[not value.co_name.startswith("<") :], value.co_names]
        loads = (each for each in get_instructions(value) if "GLOBAL" in each.opname or each.opname == "LOAD_NAME")
        return _join(value.co_name, parts, {each.argval for each in loads})
    if isinstance(value, FunctionType | type) and value.__module__ != "__main__":
        entry = f"{value.__module__}:{value.__qualname__}"
        return (code_digest(entry) if exists(entry) else entry), set()
    if isinstance(value, ModuleType):
        entry = f"{value.__name__}:"
        return (code_digest(entry) if exists(entry) else entry), set()
    if hasattr(value, "__wrapped__"):  # by a decorator
        wrapper = [value.__code__] if isinstance(value, FunctionType) else []
        return _join("wrapped", [*wrapper, value.__wrapped__])
    if isinstance(value, FunctionType):
        return _join("function", [value.__code__, value.__defaults__, value.__kwdefaults__])
    if isinstance(value, type):
        members = sorted(
            (k, v) for k, v in vars(value).items() if isinstance(v, FunctionType) or not k.startswith("__")
        )
        return _join("class", [*value.__bases__, *members])
    if isinstance(value, property):
        return _join("property", [value.fget, value.fset])
    if isinstance(value, classmethod | staticmethod):
        return _describe(value.__func__)
    if isinstance(value, dict):
        return _join("dict", list(value.items()))
    if isinstance(value, list | tuple | set | frozenset):
        return _join(type(value).__name__, sorted(value, key=repr) if isinstance(value, set | frozenset) else value)
    if isinstance(value, np.ndarray | torch.Tensor):
        return _describe(value.tolist())
    return (repr(value) if isinstance(value, int | float | str | None) else type(value).__name__), set()


def _join(kind: str, parts: Sequence[Any], names: Collection[str] = ()) -> tuple[str, set[str]]:
    described = [_describe(each) for each in parts]
    return f"{kind} {[text for text, _ in described]}", set(names).union(*(uses for _, uses in described))
