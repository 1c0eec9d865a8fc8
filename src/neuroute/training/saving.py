"""The state of a training on disk: written while the training goes on, and no more often than it is worth."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from neuroute.core.files import write_whole

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
