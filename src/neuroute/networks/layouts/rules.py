"""A published layout as a table: which of its tensors become which of ours."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError

Arguments = Mapping[str, Any]  # of our network
Join = Callable[[list[Tensor]], Tensor]  # how some tensors of a published file become one of ours
MOST_NAMES = 3  # names in a message
# What stands in names: {i} a layer, {j} an expert, {s} a repetition: nothing, _2, _3, ...
PLACES = {"i": r"(?P<i>\d+)", "j": r"(?P<j>\d+)", "s": r"(?P<s>(?:_\d+)?)"}


class Rule(NamedTuple):
    """One of our tensors, and the published ones that it is made of, in this order."""

    ours: str
    theirs: tuple[str, ...]
    how: Join

    @property
    def counts(self) -> bool:
        """Whether there are as many published tensors as experts or repetitions."""
        return "{j}" in self.theirs[0] or "{s}" in self.theirs[0]

    def parts(self, i: str, count: int) -> list[str]:
        """Published names of layer i; count: of experts or repetitions."""
        numbers = range(count if self.counts else 1)
        return [name.format(i=i, j=j, s=f"_{j + 1}" if j else "") for name in self.theirs for j in numbers]


class Layout(NamedTuple):
    """What a published training script writes of one network."""

    name: str
    kind: str  # our network
    marks: Mapping[str, int | None]  # tensors that are there, with so many columns
    lacks: tuple[str, ...]  # tensors that are not
    rules: tuple[Rule, ...]
    usual: Arguments  # arguments that no tensor tells, as published
    trained: Arguments = {}  # arguments that the code fixes: with others these weights are another network
    idle: tuple[str, ...] = ()  # tensors, or last parts of their names, that nothing computes with
    heads: str = ""  # a tensor whose first axis is the heads
    alias: str = ""  # what the network is called where no layout tells; those of this package have theirs already
    read: Callable[[Mapping[str, Tensor]], dict[str, Any]] | None = None  # our tensors -> arguments; None: LEHD's

    def fits(self, tensors: Mapping[str, Tensor]) -> bool:
        """Whether a file has this layout, as far as its marks tell."""
        return not any(name in tensors for name in self.lacks) and all(
            name in tensors and (columns is None or tensors[name].shape[-1:] == (columns,))
            for name, columns in self.marks.items()
        )


def rename(layout: Layout, tensors: dict[str, Tensor], file: Path) -> dict[str, Tensor]:
    """Return a published file's tensors under our names; `tensors` is emptied, so that none is held twice.

    Raises NeurouteError that names what is missing, left over or does not fit its neighbours.
    """
    for name in [name for name in tensors if name.rpartition(".")[2] in layout.idle or name in layout.idle]:
        del tensors[name]
    renamed: dict[str, Tensor] = {}
    missing: list[str] = []
    for rule in layout.rules:
        for i, count in _layers_of(rule, tensors):
            names = rule.parts(i, count)
            if absent := [name for name in names if name not in tensors]:
                missing += absent
                continue
            parts = [tensors.pop(name) for name in names]
            try:
                renamed[rule.ours.format(i=i)] = rule.how(parts)
            except (RuntimeError, IndexError, ValueError):
                shapes = ", ".join(str(tuple(part.shape)) for part in parts[:MOST_NAMES])
                raise NeurouteError(
                    f"{file}: {some(names)} do not fit each other ({shapes}); export them again"
                ) from None
    if missing or tensors:
        both = (("missing", missing), ("left over", sorted(tensors)))
        says = "; ".join(f"{what}: {some(names)}" for what, names in both if names)
        raise NeurouteError(
            f"{file}: looks like {layout.name}, but differs ({says}); rename the tensors, or save under neuroute's "
            "names"
        )
    return renamed


def published_name(layout: Layout, ours: str) -> str:
    """Return the first of the published names of one of our tensors; of one that has none ours."""
    for rule in layout.rules:
        if match := pattern(rule.ours).fullmatch(ours):
            return rule.parts(match.groupdict().get("i", ""), 1)[0]
    return ours


def some(names: Sequence[str]) -> str:
    """The first few names, and how many more."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def pattern(name: str) -> re.Pattern[str]:
    """Return an expression that matches a name and its numbers."""
    text = re.escape(name)
    for place, expression in PLACES.items():
        text = text.replace(rf"\{{{place}\}}", expression, 1)
    return re.compile(text)


def _layers_of(rule: Rule, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, int]]:
    """Layers (or "") that have any of the rule's tensors, and how many of the first."""
    layers: dict[str, int] = {}
    for number, theirs in enumerate(rule.theirs):
        expression = pattern(theirs)
        for match in filter(None, map(expression.fullmatch, tensors)):
            i = match.groupdict().get("i", "")
            layers[i] = layers.get(i, 0) + (number == 0)
    yield from sorted(layers.items(), key=lambda item: int(item[0] or 0))


def rows(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def scalar(parts: list[Tensor]) -> Tensor:
    return parts[0].reshape(())


def transposed(parts: list[Tensor]) -> Tensor:
    return parts[0].T


def rows_of_heads(parts: list[Tensor]) -> Tensor:
    """Of (heads, inputs, d_k) each."""
    return torch.cat([part.transpose(1, 2).flatten(0, 1) for part in parts])


def weight(ours: str, *theirs: str, how: Join = rows) -> Rule:
    return Rule(f"{ours}.weight", tuple(f"{name}.weight" for name in theirs), how)


def linear(ours: str, *theirs: str, how: Join = rows) -> Iterator[Rule]:
    """A linear layer with its bias."""
    yield weight(ours, *theirs, how=how)
    yield Rule(f"{ours}.bias", tuple(f"{name}.bias" for name in theirs), how)
