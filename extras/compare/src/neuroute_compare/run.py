"""Run a comparison: every method on every instance, kept one by one, so that a killed one goes on where it was."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from neuroute import Instance
from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.core.files import exclusive, write_json
from neuroute.core.lazy import pd
from neuroute.core.progress import Progress
from neuroute_compare.methods import Method
from neuroute_compare.records import Results, Row, frame, with_gap
from neuroute_compare.sets import Member, describe, first_double
from neuroute_compare.worker import Answer, Machine, Worker

log = logging.getLogger(__name__)
ONE_THREAD = Machine()
Solve = Callable[[Method, Instance, int, float], Answer]


@dataclass(frozen=True)
class Task:
    """One answer to be had."""

    member: Member
    method: Method
    seed: int

    def key(self, machine: str, limit: float) -> str:
        """Name all that the answer depends on, the time limit and the machine included."""
        about = {**self.method.identity(), "instance": self.member.digest, "seed": self.seed, "limit": limit}
        text = json.dumps(about | {"machine": machine}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def tasks(members: Sequence[Member], methods: Sequence[Method], seeds: int) -> list[Task]:
    """Return what there is to do: all methods on an instance, then the next; so what slows a machine slows them all."""
    return [
        Task(member, method, seed)
        for member in members
        for seed in range(seeds)
        for method in methods
        if member.instance.problem in method.problems and (seed == 0 or method.draws)
    ]


def run(
    members: Sequence[Member],
    methods: Sequence[Method],
    results: Sequence[Results],
    folder: Path,
    *,
    seeds: int = 1,
    limit: float = 600.0,
    machine: Machine = ONE_THREAD,
    solve: Solve | None = None,
) -> pd.DataFrame:
    """Return the records of all methods on all instances, and the results of others.

    Answers are kept in `answers` of the folder, each whole, and taken from there by a later call.  seeds: of methods
    that draw; limit: wall-clock seconds after which an instance is unsolved; solve: (method, instance, seed, limit) ->
    answer, instead of a process of its own (for tests).  Raises NeurouteError if another process works in the folder,
    or a method cannot be loaded.
    """
    device, rows = devices.name(devices.choose(machine.device)), list[Row]()
    key_of = f"{device}, {machine.threads} threads, {machine.memory_gb} GB, {machine.clock}"
    on = {"limit_s": limit, "device": device, "threads": machine.threads, "clock": machine.clock}
    todo = tasks(members, methods, seeds)
    what = f"{len(members)} instances, {len(methods)} rows"
    with (
        _leave_nothing_empty(folder),
        exclusive(folder / ".lock", "a comparison"),
        Worker(machine) as worker,
        Progress(len(todo), what) as bar,
    ):
        for task in todo:
            member, method = task.member, task.method
            path = folder / "answers" / f"{task.key(key_of, limit)}.json"
            answer = _load_answer(path)
            if answer is not None:
                bar.skip(1)
            else:
                answer = (solve or worker.answer)(method, member.instance, task.seed, limit)
                write_json(path, asdict(answer) | {"sha256": _digest(answer)})
                bar.add(1)
                log.debug("%s, %s: %s", member.name, method.name, answer)
            about: Row = {"method": method.name, "kind": method.kind, "version": method.version, "how": method.how}
            about |= {"budget_s": method.seconds, "code": method.code, "seed": task.seed}
            time_s = answer.cpu_seconds if machine.clock == "cpu" else answer.seconds
            rows.append(with_gap(describe(member) | about | asdict(answer) | {"time_s": time_s} | on))
    return frame([*rows, *(row for each in results for row in each.rows)])


@contextmanager
def _leave_nothing_empty(folder: Path) -> Iterator[None]:
    """Remove the folders that are made while the block runs, if it fails before there is an answer."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        yield
    except BaseException:
        if missing and {path.name for path in folder.glob("*")} == {".lock"}:
            (folder / ".lock").unlink()
            for each in missing:
                each.rmdir()
        raise


def _load_answer(path: Path) -> Answer | None:
    """Return an answer of an earlier call; None if there is none, or none that can be read or states its digest.

    Raises NeurouteError if it was changed since.
    """
    try:
        stored: dict[str, Any] = json.loads(path.read_text())
        digest = stored.pop("sha256")
        answer = Answer(**stored)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    if digest != _digest(answer):
        raise NeurouteError(f"{path}: was changed since it was measured; delete it and run again")
    return answer


def _digest(answer: Answer) -> str:
    return hashlib.sha256(json.dumps(asdict(answer), sort_keys=True).encode()).hexdigest()


def check_rows(methods: Sequence[Method], results: Sequence[Results]) -> None:
    """Raises NeurouteError if two rows would have one name."""
    names = [(m.name, m.how) for m in methods]
    for each in results:
        names += sorted({(row["method"], row["how"]) for row in each.rows})
    if double := first_double(names):
        raise NeurouteError(
            f"two methods are called '{double[0]}' ({double[1]}); rename one (--method other=...), or leave it out"
        )
