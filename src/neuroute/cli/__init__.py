"""The `neuroute` command: every stage of the DAG by hand, and what helps around it.

Commands import what they run only when they run, so that neither `--help` nor `plan` waits for torch.
"""

import logging
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import wraps
from importlib.metadata import version
from typing import Annotated, Any, TextIO, cast

import typer

from neuroute.cli.checkpoints import export_weights, import_weights, train
from neuroute.cli.compare import compare
from neuroute.cli.data import export, fetch, generate, label
from neuroute.cli.evaluation import evaluate, models, solve
from neuroute.cli.overview import doctor, plan, rehearse, schema
from neuroute.cli.results import claims, difference, keep, render, report
from neuroute.cli.warm import warm
from neuroute.cli.workspace import init
from neuroute.core.errors import Interrupted, NeurouteError
from neuroute.core.text import printable

COMMANDS = (  # in the order of the help
    plan, rehearse, label, train, evaluate, render, report, claims, difference, keep, doctor, solve, compare, models,
    generate, export, fetch, schema, import_weights, export_weights, init,
)  # fmt: skip

app = typer.Typer(
    help="Neural-routing research as one DAG: instances, labels, training, evaluation, tables and figures.\n\n"
    "Snakemake calls the stages below; each runs by hand too, from the folder that holds the Snakefile. "
    "Start with `neuroute doctor` (which solvers are there) and `neuroute plan` (what would run, and for how long).",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class _Plain:
    """Standard output, for what quotes names and rows of files."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(printable(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn a NeurouteError into one line and exit code 2, an interruption into what there was and 130."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        handler = logging.StreamHandler()
        handler.setFormatter(_Lines("%(asctime)s %(name)s: %(message)s", "%H:%M:%S"))
        logging.basicConfig(level=logging.INFO, handlers=[handler])
        for chatty in ("fontTools", "torch"):  # a page of lines for each figure; statistics at the end
            logging.getLogger(chatty).setLevel(logging.WARNING)
        with redirect_stdout(cast(TextIO, _Plain(sys.stdout))):
            try:
                command(*args, **kwargs)
            except NeurouteError as error:
                print(f"error: {error}", file=sys.stderr)
                raise typer.Exit(2) from None
            except Interrupted as stop:
                print("interrupted: there is no solution yet" if stop.best is None else stop.best)
                raise typer.Exit(130) from None

    return run


def _print_version(is_on: bool) -> None:
    if is_on:
        print(f"neuroute {version('neuroute')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    pass


for _command in COMMANDS:  # summaries are whole, however narrow the screen
    app.command(short_help=(_command.__doc__ or "").partition("\n")[0])(_guarded(_command))
app.command(hidden=True)(_guarded(warm))
