"""Functions in other processes: in one that ends when its time is over or when the caller ends, or in a pool of them.

Native searches hear neither a clock nor Ctrl-C.  So what such a function finds is said at once (`say`), and the process
is killed when nothing more is wanted of it.
"""

import ctypes
import errno
import os
import pickle
import selectors
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.context import BaseContext
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Self

from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.core.files import scratch_folder

PR_SET_PDEATHSIG = 1
FOLDER = "NEUROUTE_LIMITED"  # the environment's word for the folder of such a process
MOST_S = 1e6  # that the system waits in one call
SIZE = 8  # bytes that say how long a message is
ANSWER, ERROR = "answer", "error"  # kinds of messages that end a call


class CrashedError(NeurouteError):
    """A limited process died."""


def call(function: str, seconds: float | None, *arguments: Any) -> Any:
    """Return what `function` ("package.module:name") returns of these arguments, in a process for this call alone.

    As `Process.call`.
    """
    with Process() as process:
        return process.call(function, seconds, *arguments)


class Process:
    """Calls functions one after the other; it is started when it is needed, and anew after it was killed.

    Its temporary files, and what functions leave for the time after a kill, are in its `folder`, until it ends.
    `environment` is what it finds there besides.
    """

    def __init__(self, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        self._environment = environment
        self._resources = ExitStack()
        self.folder = self._resources.enter_context(scratch_folder())
        self._process: subprocess.Popen[bytes] | None = None
        self._function: str | None = None  # that was begun, and has not answered

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def call(self, function: str, seconds: float | None, *arguments: Any) -> Any:
        """Return what `function` ("package.module:name") returns of these arguments: `submit`, then `result`."""
        self.submit(function, *arguments)
        return self.result(seconds)

    def submit(self, function: str, *arguments: Any) -> None:
        """Have a function called, whose answer can be asked for, once."""
        if self._function is not None:
            self._kill()  # its answer would be taken for that to this call
        try:
            request = pickle.dumps((function, arguments))
            if self._process is not None and self._process.poll() is not None:  # it died since
                self._kill()
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", f"from {__name__} import main; main()", str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=(self.folder / "stderr").open("wb"),
                    bufsize=0,
                    env=os.environ | {FOLDER: str(self.folder), "TMPDIR": str(self.folder)} | dict(self._environment),
                    process_group=0,  # a terminal's Ctrl-C is this process's; solvers' own processes end with it
                )
            assert self._process.stdin is not None
            with suppress(BrokenPipeError):  # it died: there is no answer
                while request:
                    request = request[self._process.stdin.write(request) :]
        except BaseException:
            self._kill()
            raise
        self._function = function

    def result(self, seconds: float | None) -> Any:
        """Return what the submitted function returns.

        Raises TimeoutError if it says nothing for so many seconds, CrashedError if the process dies (out of memory,
        say), and NeurouteError if the function raises one; the process is killed at Ctrl-C, too.
        """
        for message in self.messages(seconds):
            if message is None:
                raise TimeoutError
            kind, value = message
        assert kind == ANSWER
        return value

    def messages(self, seconds: float | None) -> Iterator[tuple[str, Any] | None]:
        """Yield what the submitted function says, its answer last; None where it says nothing for some seconds.

        Raises as `result` does.  Where the caller leaves before the answer, the process is killed.
        """
        try:
            while self._function is not None:
                assert self._process is not None
                assert self._process.stdout is not None
                with selectors.DefaultSelector() as waiting:
                    waiting.register(self._process.stdout, selectors.EVENT_READ)
                    speaks = waiting.select(None if seconds is None else min(seconds, MOST_S))
                if not speaks:
                    yield None
                    continue
                kind, value = self._read()
                if kind in (ANSWER, ERROR):
                    self._function = None
                if kind == ERROR:
                    raise NeurouteError(value)
                yield kind, value
        finally:
            if self._function is not None:
                self._kill()

    def end(self) -> None:
        """Kill it, and remove its folder."""
        self._kill()
        self._resources.close()

    def _read(self) -> tuple[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            size = int.from_bytes(_take(self._process.stdout, SIZE), "big")
            kind, value = pickle.loads(_take(self._process.stdout, size))
        except EOFError:
            function, status = self._function, self._process.wait()
            self._kill()
            last_words = (self.folder / "stderr").read_text(errors="replace").strip().splitlines()[-1:]
            last = (last_words or ["no memory left?"])[0]
            raise CrashedError(f"{function} died with exit status {status}: {last}") from None
        return kind, value

    def _kill(self) -> None:
        self._function = None
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None


def _take(pipe: Any, size: int) -> bytes:
    """Return so many bytes of a pipe, of which one read may bring fewer.  Raises EOFError where it ends before."""
    whole = bytearray()
    while len(whole) < size:
        part = pipe.read(size - len(whole))
        if not part:
            raise EOFError
        whole += part
    return bytes(whole)


class _Idle(threading.local):
    """Processes of a thread, by the process that has the thread: they end with the thread that has begun them."""

    def __init__(self) -> None:
        self.of = defaultdict[int, list[Process]](list)


idle = _Idle()


@contextmanager
def borrow() -> Iterator[Process]:
    """Lend a process that a later call of this thread finds as it is: loaded and compiled."""
    mine = idle.of[os.getpid()]
    process = mine.pop() if mine else Process()
    try:
        yield process
    finally:
        mine.append(process)


NO_PLACE = {errno.ENOSPC, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS}  # for locks; not too many open files


def process_pool(
    workers: int, context: BaseContext, initializer: Callable[..., object], arguments: tuple[Any, ...] = ()
) -> ProcessPoolExecutor:
    """Return a pool of processes, which start when first needed.  Raises NeurouteError where they can have no locks."""
    try:
        return ProcessPoolExecutor(workers, context, initializer, arguments)
    except OSError as error:
        if error.errno not in NO_PLACE:
            raise
        raise NeurouteError(
            f"/dev/shm: full, missing or not writable ({error.strerror}), and worker processes need it; free some "
            "space, or correct its permissions"
        ) from None


# -- in the process ----------------------------------------------------------------------------------------------------

_answers: BinaryIO | None = None


def say(kind: str, value: Any = None) -> None:
    """Tell the caller of a limited process something before the answer; where there is none, nothing."""
    if folder() is not None and _answers is not None:
        _write(kind, value)


def _write(kind: str, value: Any) -> None:
    assert _answers is not None
    message = pickle.dumps((kind, value))
    _answers.write(len(message).to_bytes(SIZE, "big") + message)
    _answers.flush()


def folder() -> Path | None:
    """Return the folder of this process, whose files outlive it for a while; None where it is not a limited one."""
    return Path(os.environ[FOLDER]) if FOLDER in os.environ else None


def main() -> None:
    global _answers
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(sys.argv[1]):  # it had ended before
            return
    _answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what solvers print is no answer
    while True:
        try:
            function, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            _write(ANSWER, resolve(function)(*arguments))
        except NeurouteError as error:
            _write(ERROR, str(error))
