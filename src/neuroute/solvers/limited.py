"""Functions called in a process of its own, which ends when their time is over, or when the caller ends.

Native searches hear neither a clock nor Ctrl-C.  One that is asked to end may answer with the best that it has: it
looks at `is_asked_to_end`; any other is killed.
"""

import ctypes
import os
import pickle
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import Any, Self

from neuroute.core.dotted import resolve
from neuroute.core.errors import Interrupted, NeurouteError
from neuroute.core.private import scratch_folder

PR_SET_PDEATHSIG = 1
FOLDER = "NEUROUTE_LIMITED"  # the environment's word for the folder of such a process
AT_ONCE_S = 0.5  # after which an answer is waited for
MOST_S = 1e6  # that the system waits in one call
SAMPLE_S = 0.02  # of processor time, by which the machine's load is seen
_end = Event()  # set when the process is asked to end


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

    def call(
        self,
        function: str,
        seconds: float | None,
        *arguments: Any,
        grace: float = 0.0,
        meanwhile: Callable[[], object] | None = None,
    ) -> Any:
        """Return what `function` ("package.module:name") returns of these arguments: `begin`, then `answer`."""
        self.begin(function, *arguments)
        return self.answer(seconds, grace=grace, meanwhile=meanwhile)

    def begin(self, function: str, *arguments: Any) -> None:
        """Have a function called, which may leave in the `folder` what it finds; its answer can be asked for, once."""
        if self._function is not None:
            self._kill()  # its answer would be taken for that to this call
        self._function = function
        try:
            self._send(pickle.dumps((function, arguments)))
        except BaseException:
            self._kill()
            raise

    def answer(
        self, seconds: float | None, *, grace: float = 0.0, meanwhile: Callable[[], object] | None = None
    ) -> Any:
        """Return what the function that was begun returns.

        After so many seconds it is asked to end; what it answers within the `grace` counts, and then it is killed.
        `meanwhile` is begun where there is no answer at once.  It should be short, and must not compile: C code that
        calls Python back, as numba's compiler does, loses a Ctrl-C.

        Raises TimeoutError if it has not answered, Interrupted, with the answer if there is one, at Ctrl-C, and
        NeurouteError if the process dies (out of memory, say) or the function raises one.
        """
        try:
            began = time.perf_counter()
            if meanwhile and not self.wait(AT_ONCE_S if seconds is None else min(AT_ONCE_S, seconds)):
                meanwhile()
            if self.wait(None if seconds is None else max(0.0, seconds - (time.perf_counter() - began))):
                return self._answer()
        except KeyboardInterrupt:
            raise Interrupted(self._end_within(grace)) from None
        except NeurouteError:
            raise
        except BaseException:
            self._kill()
            raise
        answer = self._end_within(grace)
        if answer is None:
            raise TimeoutError
        return answer

    def wait(self, seconds: float | None) -> bool:
        """Whether what was begun has an answer, or the process died, within so many seconds."""
        if self._process is None:
            return True
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._process.stdout, selectors.EVENT_READ)
            return bool(waiting.select(None if seconds is None else min(seconds, MOST_S)))

    def end(self) -> None:
        """Kill it, and remove its folder."""
        self._kill()
        self._resources.close()

    def _send(self, request: bytes) -> None:
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
                process_group=0,  # a terminal's Ctrl-C is this process's to answer; solvers' own processes end with it
            )
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died: there is no answer
            while request:
                request = request[self._process.stdin.write(request) :]

    def _answer(self) -> Any:
        assert self._process is not None
        assert self._process.stdout is not None
        function, self._function = self._function, None
        try:
            with open(self._process.stdout.fileno(), "rb", closefd=False) as answers:  # a pipe's reads alone are short
                result, error = pickle.load(answers)
        except (EOFError, pickle.UnpicklingError):
            status = self._process.wait()
            self._kill()
            last_words = (self.folder / "stderr").read_text(errors="replace").strip().splitlines()[-1:]
            last = (last_words or ["no memory left?"])[0]
            raise NeurouteError(f"{function} died with exit status {status}: {last}") from None
        if error is not None:
            raise NeurouteError(error)
        return result

    def _end_within(self, grace: float) -> Any:
        """Ask it to end, and kill it if there is no answer after the grace: None."""
        assert self._process is not None
        if grace:
            try:
                os.killpg(self._process.pid, signal.SIGTERM)
                if self.wait(grace):
                    return self._answer()
            except (KeyboardInterrupt, NeurouteError, ProcessLookupError):
                pass
        self._kill()
        return None

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


# -- in the process ----------------------------------------------------------------------------------------------------


def is_asked_to_end() -> bool:
    """Whether this process was asked to answer with the best that it has."""
    return _end.is_set()


def folder() -> Path | None:
    """Return the folder of this process, whose files outlive it for a while; None where it is not a limited one."""
    return Path(os.environ[FOLDER]) if FOLDER in os.environ else None


def slowed(seconds: float) -> float:
    """Return so many seconds of wall-clock time in processor time, as busy as the machine is now."""
    began, used = time.perf_counter(), time.process_time()
    while time.process_time() - used < SAMPLE_S:
        pass
    return seconds * min(1.0, SAMPLE_S / (time.perf_counter() - began))


def main() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(sys.argv[1]):  # it had ended before
            return
    signal.signal(signal.SIGTERM, lambda *_: _end.set())
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what solvers print is no answer
    while True:
        try:
            function, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        _end.clear()
        outcome: tuple[Any, str | None]
        try:
            outcome = resolve(function)(*arguments), None
        except NeurouteError as error:
            outcome = None, str(error)
        pickle.dump(outcome, answers)
        answers.flush()
