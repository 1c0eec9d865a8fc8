"""Shipped networks: checkpoints in `neuroute/networks/zoo`, each with a model card (NAME.safetensors, NAME.json).

A checkpoint of a user's own is refused when the code of its network has changed since, as nobody knows whether it still
computes the same.  Of a shipped one the card says what it is to compute: its decision on a fixed instance, which is
compared whenever the network is loaded.  So edits that change nothing do no harm, and others are noticed at once.
"""

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json
from neuroute.core.files import sha256 as sha256
from neuroute.core.lazy import pd
from neuroute.core.text import html_table
from neuroute.core.yaml_files import validate
from neuroute.specs.data import Problem, Spec
from neuroute.specs.objects import Decoding

FOLDER = Path(str(files("neuroute"))) / "networks" / "zoo"
HEADS = ("name", "problem", "sizes", "parameters", "gap")  # of `Card.row`
TOLERANCE = 1e-3  # of logits, which differ by rounding from machine to machine


class Gap(Spec):
    """What a network was measured to do on a set of instances."""

    set: str  # TSP100
    decoding: str  # its name, such as greedy
    instances: int
    gap: float  # %, to the reference
    low: float | None = None  # of a 95 % interval
    high: float | None = None
    reference: str  # lkh
    seconds: float | None = None  # of all instances


class Card(Spec):
    """What a shipped network is: how it was trained, what it solves, and how well.

    Attributes:
        name: how it is asked for, as in `neuroute.solve(..., model="tsp")`; of a paper's run its id.
        problem: `tsp`, `cvrp` or `vrp`.
        variants: of problem `vrp`, the names of those that it was trained on.
        trained_nodes: the least and the most nodes (with vehicles: customers) that it was trained on.
        nodes: the least and the most nodes (with vehicles: customers) for which it is recommended.
        decoding: how solutions are built and improved, unless the user says otherwise.
        gaps: what was measured.
        sha256: of the checkpoint.
        decision: logits of its first decision on a fixed instance.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*(/[a-z][a-z0-9_-]*)?$")]
    problem: Problem
    variants: tuple[str, ...] | None = None
    run: str
    network: str
    parameters: int
    trained_on: str
    steps: int | None = None
    epochs: int | None = None
    seed: int
    commit: str
    date: str
    device: str
    seconds: float
    trained_nodes: tuple[int, int]
    nodes: tuple[int, int]
    decoding: Decoding = Decoding()
    gaps: tuple[Gap, ...] = ()
    sha256: str
    decision: tuple[float, ...]

    def solves(self, problems: tuple[str, ...], variant: str) -> bool:
        """Whether it takes instances of one of these problems, and of this variant, such as `VRPTW`."""
        return self.problem in problems and (self.variants is None or variant in self.variants)

    @property
    def solves_what(self) -> str:
        """The problem, or how many variants of it."""
        if not self.variants:
            return self.problem.upper()
        return self.variants[0] if len(self.variants) == 1 else f"{len(self.variants)} VRPs"

    @property
    def gap(self) -> Gap | None:
        """What it does at the largest size measured within those trained on, without search, rotations, reflections."""
        sized = [(int(match[1]), gap) for gap in self.gaps if (match := re.search(r"[A-Z](\d+)$", gap.set))]
        inside = [(n, gap) for n, gap in sized if n <= self.trained_nodes[1]]
        most = max((n for n, _ in inside), default=None)
        at_most = {gap.decoding: gap for n, gap in reversed(inside) if n == most}  # of the first variant
        return at_most.get("multistart") or at_most.get("greedy") or next(iter(reversed(at_most.values())), None)

    @property
    def row(self) -> tuple[str, str, str, str, str]:
        """Name, problem, sizes, parameters and `gap`, for a table."""
        gap = "none" if self.gap is None else f"{self.gap.gap:.2f} % ({self.gap.set}, {self.gap.decoding})"
        return self.name, self.solves_what, f"{self.nodes[0]} to {self.nodes[1]}", f"{self.parameters:,}", gap

    def to_frame(self) -> "pd.DataFrame":
        """Return a row for each set and decoding measured: instances, gap (%) with its interval, reference, seconds."""
        return pd.DataFrame([gap.model_dump() for gap in self.gaps], columns=list(Gap.model_fields))

    def __repr__(self) -> str:
        _, solves, sizes, _, gap = self.row
        return f"<Card {self.name}: {solves}, n {sizes}, gap {gap}>"

    def _repr_html_(self) -> str:
        return html_table(f"{self.name}: {self.solves_what}, {self.row[2]} stops; gaps in %", self.to_frame())

    def __str__(self) -> str:
        """All that is known of it, a line each."""
        stops = "nodes" if self.problem == "tsp" else "customers"
        lines = [
            f"{self.name}: {', '.join(self.variants) if self.variants else self.problem.upper()}",
            f"  for {self.nodes[0]} to {self.nodes[1]} {stops}",
            f"  {self.network.rpartition(':')[2]}, {self.parameters:,} parameters",
            f"  trained on {self.trained_on}, in {self.seconds / 60:,.0f} min on {self.device}",
            f"  run {self.run}, seed {self.seed}, commit {self.commit}, {self.date}",
        ]
        if self.gaps:
            lines.append("  gaps measured (%):")
            set_width, how_width = (max(len(getattr(g, key)) for g in self.gaps) for key in ("set", "decoding"))
            for g in self.gaps:
                interval = "" if g.low is None or g.high is None else f" [{g.low:.2f}, {g.high:.2f}]"
                lines.append(
                    f"    {g.set:{set_width}}  {g.decoding:{how_width}}  {g.gap:6.2f}{interval}, to {g.reference}"
                )
        return "\n".join(lines)


def table(every: Sequence[Card]) -> str:
    """Return a line a network: what it solves, for which sizes, how large it is and its `gap`."""
    rows = [HEADS, *(card.row for card in every)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def cards() -> dict[str, Card]:
    """Return the cards of the networks for use by name.  Raises NeurouteError if one is damaged."""
    return {path.stem: _read_card(path.stem) for path in sorted(FOLDER.glob("*.json"))}


def runs() -> list[str]:
    """Return the papers' runs whose networks come along, to measure again: they are not for use."""
    return sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.glob("*/*.json"))


def _read_card(name: str) -> Card:
    path = FOLDER / f"{name}.json"
    card = validate(Card, read_json(path, "install neuroute anew"), f"{path}: model card", see=__name__)
    if card.name != name:
        raise NeurouteError(f"{path}: the card is of '{card.name}'; install neuroute anew")
    return card


def models() -> list[Card]:
    """Return the cards of the networks that come with this package, by which `neuroute.solve` picks one.

    Raises:
        NeurouteError: if a card is damaged.
    """
    return list(cards().values())


def choose(problems: tuple[str, ...], variant: str, n: int, name: str) -> Card:
    """Return the shipped network for an instance: one made for its problem, and the nearest to its size.

    Of more nodes than it is for, it shortens pieces of a construction (`neuroute.api.by_network`).  `problems`: whose
    networks take it, the best first; `name`: of the instance.  Raises NeurouteError if there is none for the problem.
    """
    fits = [card for card in cards().values() if card.solves(problems, variant)]
    if not fits:
        there = "; there are: " + ", ".join(cards()) if cards() else ""
        raise NeurouteError(
            f"{name}: no pretrained network for {variant}{there}; give a checkpoint (--model model.safetensors) or a "
            "solver (--solver insertion)"
        )

    def misfit(card: Card) -> tuple[bool, int, int, int]:
        low, high = card.nodes
        return n > high, problems.index(card.problem), max(low - n, n - high, 0), high - low

    return min(fits, key=misfit)


def card_of(name: str) -> Card:
    """Return a shipped network's card.  Raises NeurouteError for an unknown name."""
    if name in runs():
        return _read_card(name)
    by_name = cards()
    if name not in by_name:
        there = f" or a pretrained network: {', '.join(by_name)}" if by_name else "; this copy has no networks"
        raise NeurouteError(f"no network '{name}'; give a checkpoint (.safetensors){there}")
    return by_name[name]


def checkpoint(name: str) -> tuple[Path, Card]:
    """Return a shipped network's file and card.  Raises NeurouteError for an unknown name, or an altered file."""
    card, path = card_of(name), FOLDER / f"{name}.safetensors"
    if not path.is_file() or sha256(path) != card.sha256:
        raise NeurouteError(f"{path}: not the file that its card describes; install neuroute anew")
    return path, card


def check_decision(net: Any, card: Card) -> None:
    """Raises NeurouteError if a network no longer computes what its card says."""
    logits = decision(net)
    if len(logits) != len(card.decision) or not np.allclose(logits, card.decision, atol=TOLERANCE):
        raise NeurouteError(
            f"network '{card.name}' differs from its card: the code of {card.network} has changed; reinstall neuroute"
        )


def decision(net: Any) -> tuple[float, ...]:
    """Return the logits of a network's first decision on a fixed instance, where they are finite.  On the CPU."""
    import torch

    from neuroute.datasets.problem_spec import SPEC
    from neuroute.decoding.environment import ENVIRONMENT
    from neuroute.specs.objects import Dataset

    variant = "OVRPBLTW" if net.problem == "vrp" else None
    instances = SPEC.of(net.problem).instances(Dataset(problem=net.problem, n=20, count=1, variant=variant))
    environment = ENVIRONMENT.of(net.problem)
    batch = environment.batch(instances, torch.device("cpu"))
    with torch.inference_mode():
        if net.multi_start:
            prepared = environment.prepare(net, batch, 0)
            rollout = batch.rollout(batch.start_nodes(2), torch.float32)
            logits = net.decide(prepared, rollout.context, rollout.current, rollout.action_mask)
        else:
            rows = net.encode(*batch.features)
            load = () if net.problem == "tsp" else (torch.ones(1),)
            logits = net.decide(torch.cat([rows, rows[:, :1]], dim=1), *load)
    return tuple(round(float(x), 5) for x in logits.flatten() if torch.isfinite(x))
