"""Methods that are compared: networks, solvers, and functions of one's own.

Each network has two rows: its default decoding (`multistart` of a network of many starts, else `greedy`), without
images and search, and the best it finds within the time budget.  Solvers that search have the same budget; `nearest`
and `insertion` end by themselves.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from neuroute.api import by_network, classical, zoo
from neuroute.api.classical import QUICK, available
from neuroute.api.model import SOLVES, digest_of, load_model
from neuroute.api.zoo import sha256
from neuroute.core.digest import exists
from neuroute.core.dotted import resolve, search_working_folder
from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.networks.base import RoutingNetwork
from neuroute_compare.settings import split_method

Kind = Literal["network", "solver", "function"]
# A run's id, a paper's key or `trained` -> run -> checkpoint, as `load_model` takes it.
Checkpoints = Callable[[str], Mapping[str, str]]
PROBLEMS = ("tsp", "cvrp")


@dataclass(frozen=True)
class Method:
    """One row of a comparison."""

    name: str  # what a reader calls it
    kind: Kind
    source: str  # a solver's name, a shipped network's, a checkpoint, or a function as "module:name"
    problems: tuple[str, ...]  # that it solves here
    seconds: float | None  # of wall-clock time for an instance; None: it ends by itself
    draws: bool  # whether its answers differ from seed to seed
    version: str  # of what answers: of a solver's package, or a digest of the weights
    trusted: tuple[str, ...] = field(default=(), repr=False)  # kinds of networks that its checkpoint may name
    decoding: str | None = None  # of a network, without a time; its name
    parts: tuple[str, ...] = field(default=(), repr=False)  # definitions by which it answers

    @property
    def how(self) -> str:
        """How it solves, for the reader."""
        if self.seconds is not None:
            return f"{self.seconds:g} s"
        return self.decoding or "one pass"

    @property
    def code(self) -> str:
        """The digest of what answers for it; none of a function of an installed package, whose version says that."""
        return digest_of(*self.parts) if self.parts else ""

    def on(self, problems: Collection[str]) -> "Method":
        """The method on these problems alone."""
        return replace(self, problems=tuple(p for p in self.problems if p in problems))

    def identity(self) -> dict[str, Any]:
        """All that an answer depends on, besides the instance, the seed and the machine."""
        about = asdict(self)
        for label in ("name", "problems", "draws", "parts"):
            del about[label]
        return about | {"code": self.code}


def parse(text: str, seconds: float, checkpoints: Checkpoints, trusted: Collection[str]) -> list[Method]:
    """Return the rows of a method as it is named, a search of so many seconds.

    `lkh`, `tsp`, a checkpoint, a run of the plan, `module:function`, or `module:Net=FILE`; `hgs@cvrp` is for that
    problem alone, and `fast=lkh` has a name of its own.

    Raises NeurouteError if there is none of that name, or if a name of its own stands for several runs.
    """
    search_working_folder()
    rows: list[Method]
    name, text, only = split_method(text)
    if only and only not in PROBLEMS:
        raise NeurouteError(f"--method {text}@{only}: no problem '{only}'; take one of {', '.join(PROBLEMS)}")
    path = Path(text)
    if text in classical.known():
        rows = [_solver(text, seconds)]
    elif "=" in text and ":" in text.partition("=")[0]:
        rows = _network(text.partition("=")[0].rpartition(":")[2], text, seconds, trusted)
    elif path.suffix == ".safetensors":
        rows = _network(path.resolve().parent.name if path.stem == "model" else path.stem, text, seconds, trusted)
    elif text in zoo.cards():
        rows = _network(text, text, seconds, trusted)
    elif ":" in text:
        rows = [_function(text, seconds)]
    else:
        runs = _runs(text, checkpoints)
        if name and len(runs) > 1:
            raise NeurouteError(f"--method {name}={text}: these are {len(runs)} runs; take one, as {next(iter(runs))}")
        rows = [m for run, file in runs.items() for m in _network(run, file, seconds, trusted)]
    return [replace(m, name=name or m.name).on([only] if only else PROBLEMS) for m in rows]


def check_name(text: str, checkpoints: Checkpoints) -> None:
    """Raises NeurouteError if a method's name is that of nothing, before anything is loaded or fetched."""
    _, source, _ = split_method(text)
    if not (source in classical.known() or source in zoo.cards() or ":" in source or source.endswith(".safetensors")):
        _runs(source, checkpoints)


def _runs(text: str, checkpoints: Checkpoints) -> Mapping[str, str]:
    runs = checkpoints(text)
    if not runs:
        names = [*zoo.cards(), *available("tsp")]
        meant = did_you_mean(near(text, {*names, *classical.known()})) or ";"
        raise NeurouteError(
            f"--method {text}: no such solver, network or finished run{meant} There are: {', '.join(names)}; or give a "
            ".safetensors file or module:function"
        )
    return runs


def _solver(name: str, seconds: float) -> Method:
    version = classical.version(name)  # raises, saying how to get it, where it is missing
    quick = name.partition("-")[0] in QUICK
    able = tuple(p for p in PROBLEMS if name in available(p))
    parts = classical.definitions(name)
    return Method(name, "solver", name, able, None if quick else seconds, name != "nearest", version, parts=parts)


def _network(name: str, source: str, seconds: float, trusted: Collection[str]) -> list[Method]:
    kind, _, file = source.partition("=")
    if file and ":" in kind:
        source, trusted = file, {*trusted, kind}
    model = load_model(source, "cpu", trusted)
    able = tuple(p for p in PROBLEMS if p in SOLVES[model.problem])
    weights = zoo.checkpoint(source)[0] if model.card is not None else Path(source)
    version = f"sha256 {sha256(weights)[:16]}"
    kinds = tuple(sorted(trusted))
    parts, draws = by_network.definitions(model, searches=False), model.net.random_embeddings
    built = Method(name, "network", source, able, None, draws, version, kinds, model.decoding.name, parts)
    parts = by_network.definitions(model, searches=True)
    return [built, replace(built, seconds=seconds, draws=True, decoding=None, parts=parts)]


def _function(dotted: str, seconds: float) -> Method:
    try:
        function = resolve(dotted)
    except NeurouteError:
        raise
    except Exception as error:  # whatever a user's module raises
        raise NeurouteError(f"--method {dotted}: its module cannot be imported ({error!r})") from None
    if isinstance(function, type) and issubclass(function, RoutingNetwork):
        raise NeurouteError(f"--method {dotted}: is a network; give its weights, too: {dotted}=model.safetensors")
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        raise NeurouteError(
            f"--method {dotted}: a function of (instance, seconds) is expected, which returns a tour or routes"
        ) from None
    file = inspect.getsourcefile(inspect.unwrap(function))
    version = f"sha256 {sha256(Path(file))[:16]}" if file else ""
    module, _, name = dotted.rpartition(":")
    name = module.rpartition(".")[2] if name == "solve" else name  # which says nothing
    parts = (dotted,) if exists(dotted) else ()
    return Method(name, "function", dotted, PROBLEMS, seconds, True, version, parts=parts)
