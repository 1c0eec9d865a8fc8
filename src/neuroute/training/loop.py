"""The training loop: progress, logs, validation, and a state from which a killed run ends with the same weights."""

import json
import logging
import math
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import torch
from torch import Tensor

from neuroute.core.device import Threads, stream_seed
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_text, write_whole
from neuroute.networks.weights import all_finite, is_bundled
from neuroute.specs.objects import Reconstruction, SelfImprovement
from neuroute.training.batches import Batches
from neuroute.training.callbacks import Callback, Progress, TrainingStart

# -- the state of a training on disk: written while the training goes on, and no more often than it is worth ---------

SAVE_EVERY_S = 60.0  # at most this often
LATEST_S = 600.0  # at least this often: what a kill costs
SHARE = 100  # the time between two states is so many times what one holds the training up


def on_host(value: Any) -> Any:
    """The same dicts and lists, with all tensors in host memory; those that are there already are not copied."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {key: on_host(each) for key, each in value.items()}
    return [on_host(each) for each in value] if isinstance(value, list | tuple) else value


def load_whole(path: Path, device: torch.device | str = "cpu") -> Any:
    """What `torch.save` has written.  Raises many kinds of exceptions for a file that is missing or damaged."""
    with ZipFile(path) as file:
        if damaged := file.testzip():  # torch itself looks at no checksums
            raise BadZipFile(f"{damaged} has another checksum")
    return torch.load(path, map_location=device, weights_only=True)


class SavedState:
    """The file of a state.  A state of a GPU is copied to the host, and a thread writes it; one of a CPU, which the
    next batch would change meanwhile, is written at once.
    """

    def __init__(self, path: Path, device: torch.device) -> None:
        self.path = path
        self._writer = ThreadPoolExecutor(1) if device.type != "cpu" else None
        self._writing: Future[None] | None = None
        self._saved, self._every = time.monotonic(), SAVE_EVERY_S

    def is_due(self) -> bool:
        return time.monotonic() - self._saved > self._every

    def save(self, state: dict[str, Any]) -> None:
        """Raises NeurouteError if this state, or the one before it, cannot be written."""
        began = time.monotonic()
        self.wait()
        content = on_host(state)
        if self._writer is None:
            self._write(content)
        else:
            self._writing = self._writer.submit(self._write, content)
        self._saved = time.monotonic()
        self._every = min(max(SAVE_EVERY_S, SHARE * (self._saved - began)), max(SAVE_EVERY_S, LATEST_S))

    def wait(self) -> None:
        """Until the last state is on disk.  Raises NeurouteError if it cannot be written."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _write(self, content: dict[str, Any]) -> None:
        write_whole(self.path, lambda file: torch.save(content, file))


log = logging.getLogger("neuroute.train")
TELL_EVERY_S = 10.0


class TrainingLoop:
    """Runs `total` batches and keeps `<state>/state.pt`, with `<state>/log.jsonl` to follow beside it.

    `validate` gives the gap on each validation set by its id; the first decides which weights are the best.
    """

    def __init__(
        self,
        batches: Batches,
        validate: Callable[[], dict[str, float]],
        callbacks: Sequence[Callback],
        out: Path,
        pace: Threads,
    ) -> None:
        scheme, training = batches.scheme, batches.run.training
        self.batches, self.scheme, self.net = batches, scheme, scheme.net
        self.dir, self.world, self.device, self.out = scheme.state_dir, scheme.world, scheme.device, out
        self.total, self.samples, self.validate = training.batches, batches.samples, validate
        self.log_every = max(1, self.total // 200)
        self.done = 0
        self.updates = 0
        self.seconds = 0.0  # over all attempts
        self.processor_seconds = 0.0  # of this process, all of its threads, over all attempts
        # Of the batches since the log's last line.  Summed up where it is: to read it is to wait for the device.
        self.loss_sum, self.loss_updates = torch.zeros((), dtype=torch.float64, device=self.device), 0
        self.loss_max = torch.full_like(self.loss_sum, -math.inf)  # of a batch's mean loss: a mean hides spikes
        self.lines: list[str] = []
        self._signals: list[int] = []
        # The weights of the best validation so far, and its gap, where a run exports these instead of the last.
        self.keep_best = isinstance(training, SelfImprovement | Reconstruction) or training.keep == "best"
        self.best, self.best_gap = dict[str, Tensor](), math.inf
        self._saved = SavedState(self.dir / "state.pt", self.device)
        self.pace = pace
        self.callbacks = callbacks if self.world.leads else ()
        self._is_followed = bool(callbacks)
        self.is_ended = False  # by a callback, before its last batch
        self.gaps: list[float] = []  # of all validations, on the first set

    # -- state ------------------------------------------------------------------------------------------------

    def _save(self) -> None:
        if not self.world.leads:
            return
        state = {
            "run": self.batches.run.canonical(),
            "net": self.net.state_dict(),
            "optimizer": self.batches.optimizer.state_dict(),
            "done": self.done,
            "updates": self.updates,
            "seconds": self.seconds,
            "processor_seconds": self.processor_seconds,
            "loss": [float(self.loss_sum), self.loss_updates, float(self.loss_max)],
            "lines": self.lines,
            "gaps": self.gaps,
            "is_ended": self.is_ended,
            "best": [self.best_gap, self.best],
            "batches": self.batches.state(),
            "threads": self.pace.tried and self.pace.chosen,
        }
        self._saved.save(state)
        self._show()

    def resume(self) -> None:
        """Continue where a killed run stopped, if it left a state."""
        path = self.dir / "state.pt"
        if not path.exists():
            return
        try:
            state = load_whole(path, self.device)
            if state["run"] != self.batches.run.canonical():
                raise ValueError("of another run")
        except Exception as error:
            raise NeurouteError(f"{path}: unreadable training state ({error}); delete it to start over") from None
        self.net.load_state_dict(state["net"])
        self.batches.optimizer.load_state_dict(state["optimizer"])
        self.done, self.updates, self.seconds = state["done"], state["updates"], state["seconds"]
        self.processor_seconds = state["processor_seconds"]
        total, self.loss_updates, largest = state["loss"]
        self.loss_sum, self.loss_max = self.loss_sum.new_tensor(total), self.loss_sum.new_tensor(largest)
        self.lines, self.gaps = state["lines"], state["gaps"]
        self.is_ended = state["is_ended"] and self._is_followed  # without callbacks it goes on to its last batch
        self.best_gap, self.best = state["best"]
        self.batches.restore(state["batches"])
        if self.pace.chosen is None and state.get("threads"):
            self.pace.choose(state["threads"], "as before")
        log.info("resumed at batch %d of %d", self.done, self.total)
        if self.is_ended:
            log.info("a callback ended it there: for other callbacks train under another name")

    # -- running ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Train to the end.  On SIGTERM or Ctrl-C the batch in hand is finished and the state saved."""
        run, followers = self.batches.run, list[Callback]()
        try:
            for callback in self.callbacks:
                callback.begin(TrainingStart(run.id, run.model_dump(mode="json"), self.dir, self.out, self.lines))
                followers.append(callback)
            self._run()
        finally:
            for callback in followers:
                callback.end()

    def _run(self) -> None:
        stop = self._signals
        heard = _SIGNALS if threading.current_thread() is threading.main_thread() else ()  # others may set no handlers
        handlers = {s: signal.signal(s, lambda number, _frame: stop.append(number)) for s in heard}
        checks_first = not is_bundled(self.batches.run.network.kind)
        began = last_message = time.monotonic()
        before, start = self.seconds, self.done
        spent = self.processor_seconds - time.process_time()
        try:
            if self.done == 0:
                self._validate()
            while self.done < self.total and not self.is_ended:
                is_tried = self.pace.chosen is None
                # A network or loss that draws from these, as dropout does, draws by the batch: also after a kill.
                seed = stream_seed(self.batches.run.seed, self.done * self.world.size + self.world.rank)
                torch.manual_seed(seed)
                np.random.seed(seed)  # noqa: NPY002 - of code that is not ours
                random.seed(seed)
                with self.pace.piece():
                    loss, updates = self.batches.train(self.done)
                if is_tried and self.pace.reason:
                    log.info("%s", self.pace.reason)
                if checks_first and self.done == 0 and not (loss.isfinite() and all_finite(self.net)):
                    raise NeurouteError(
                        f"{self.batches.run.id}: first batch: loss {float(loss):g} or updated weights are not finite; "
                        "lower the learning rate, or look for log(0), 0/0, overflow"
                    )
                self.seconds = before + time.monotonic() - began
                for note in self.batches.notes():  # lines that belong before the batch in hand
                    about = {"batch": self.done, "samples": self.samples(self.done), "seconds": round(self.seconds, 4)}
                    self._record(note | about)
                self.done += 1
                self.updates += updates
                self.loss_sum += loss
                self.loss_updates += updates
                if updates:  # a path of three stops has no decision to learn
                    self.loss_max = torch.maximum(self.loss_max, loss / updates)
                now = time.monotonic()
                self.seconds = before + now - began
                rate = (self.samples(self.done) - self.samples(start)) / (now - began)
                self._ask("after_batch", loss / max(updates, 1))
                if self.done % self.log_every == 0 or self.done == self.total or self.is_ended:
                    self._log_loss(rate)
                if self.done in self.batches.run.training.validate_after or self.is_ended:
                    self._validate()
                    now = time.monotonic()
                    self.seconds = before + now - began
                self.processor_seconds = spent + time.process_time()
                if now - last_message > TELL_EVERY_S:
                    self._tell(rate)
                    last_message = now
                if stop:
                    self._save()
                    self._saved.wait()
                    where = f"at batch {self.done} of {self.total}; run it again to go on"
                    if stop[0] == signal.SIGINT:
                        raise KeyboardInterrupt(f"stopped {where}")
                    raise NeurouteError(f"stopped by signal {stop[0]} {where}")
                if self._saved.is_due():
                    self._save()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        if self.is_ended:
            self.batches.leave(self.done)
        self._save()
        self._saved.wait()

    def _ask(self, when: str, loss: Tensor | None = None) -> None:
        """Let callbacks see where the training is, and end it."""
        if not self._is_followed:
            return
        samples = self.samples(self.done)
        progress = Progress(self.done, self.total, samples, self.seconds, loss, tuple(self.gaps), self.net)
        answers = [getattr(callback, when)(progress) for callback in self.callbacks]
        self.is_ended |= bool(self.world.tell(float(any(answers)), self.device))

    def stopping(self) -> bool:
        """Whether SIGTERM or Ctrl-C has asked to stop."""
        return bool(self._signals)

    def exported(self) -> dict[str, Tensor]:
        """The weights that the run is left with."""
        return self.best if self.keep_best and self.best else self.net.state_dict()

    def _record(self, line: dict[str, Any]) -> None:
        self.lines.append(json.dumps(line))
        for callback in self.callbacks:
            callback.record(line)

    def _log_loss(self, rate: float) -> None:
        sums = torch.stack([self.loss_sum, self.loss_sum.new_tensor(self.loss_updates)])
        mean = self.world.sum(sums.float())
        if not mean[1]:
            return  # nothing was learnt since the last line
        loss = float(mean[0] / mean[1])
        self._record(
            {
                "kind": "train",
                "batch": self.done,
                "updates": self.updates,
                "samples": self.samples(self.done),
                "loss": loss,
                "loss_max": float(self.world.max(self.loss_max)),
                "lr": self.batches.learning_rate(self.done - 1),
                "samples_per_s": round(rate, 2),
                "eta_s": round((self.samples(self.total) - self.samples(self.done)) / rate, 1),
                "seconds": round(self.seconds, 4),
            }
        )
        self.loss_sum, self.loss_updates = torch.zeros_like(self.loss_sum), 0
        self.loss_max = torch.full_like(self.loss_max, -math.inf)
        if not math.isfinite(loss) or not all_finite(self.net):
            log.warning("loss or weights are not finite at batch %d", self.done)

    def _validate(self) -> None:
        gaps, gap = dict[str, float](), math.inf
        if self.world.leads:
            self.net.eval()
            gaps = self.validate()
            gap = next(iter(gaps.values()))
            self.net.train()
        gap = self.world.tell(gap, self.device)
        if self.keep_best and gap < self.best_gap:
            self.best_gap = gap
            self.best = {name: value.detach().clone() for name, value in self.net.state_dict().items()}
        if self.world.leads:
            self._record(
                {
                    "kind": "validation",
                    "batch": self.done,
                    "samples": self.samples(self.done),
                    "gap_pct": gap,
                    "gaps_pct": gaps,
                    "seconds": round(self.seconds, 4),
                }
            )
            text = ", ".join(f"{g:.3f} %" for g in gaps.values())
            log.info("batch %d/%d: validation gap %s", self.done, self.total, text)
        self.gaps.append(gap)
        self._ask("after_validation")

    def _show(self) -> None:
        """Let the log be followed while training; what counts for resuming is in the state."""
        write_text(self.dir / "log.jsonl", "".join(line + "\n" for line in self.lines))

    def _tell(self, rate: float) -> None:
        """Log progress, and the time that is left at so many samples a second."""
        if self.world.leads:
            self._show()
            remaining = (self.samples(self.total) - self.samples(self.done)) / rate
            trains = [line for line in self.lines if '"train"' in line]
            loss = f"{json.loads(trains[-1])['loss']:.4f}" if trains else "not yet known"
            minutes, seconds = divmod(int(remaining), 60)
            hours, minutes = divmod(minutes, 60)
            clock = f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{seconds:02d}s"
            state = (self.done, self.total, loss, rate, clock)
            log.info("batch %d/%d  loss %s  %.0f samples/s  %s left", *state)


_SIGNALS = (signal.SIGTERM, signal.SIGINT)
