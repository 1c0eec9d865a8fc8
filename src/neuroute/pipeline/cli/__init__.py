"""The `neuroute` command: every stage of the DAG by hand, and what helps around it.

Commands import what they run only when they run, so that neither `--help` nor `plan` waits for torch.
"""

import logging
import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import wraps
from importlib.metadata import version
from typing import Annotated, Any, TextIO, cast

import typer
from typer.core import TyperGroup

from neuroute.core.dotted import BESIDE, entries, how_to_get, load
from neuroute.core.errors import Interrupted, NeurouteError, may_pass
from neuroute.core.job import TEMPORARY
from neuroute.core.text import printable
from neuroute.pipeline.cli.library import evaluate, export, generate, import_weights, models, solve, train
from neuroute.pipeline.cli.papers import claims, difference, keep, label, plan, render, report, verify, why
from neuroute.pipeline.cli.setup import doctor, fetch, init, schema
from neuroute.pipeline.cli.warm import warm

# In the order of the help: what stands below each heading, with an example.  Packages bring others, as an entry point
# `neuroute.commands` that names a table like this.
COMMANDS: dict[str, dict[Callable[..., None], str]] = {
    "Instances and networks": {
        solve: "neuroute solve berlin52.tsp --seconds 10",
        evaluate: "neuroute evaluate --model tsp --data mine.npz --reference lkh",
        train: "neuroute train scaling/base_6x128 --set runs.scaling/base_6x128.training.learning_rate=2e-4",
        models: "neuroute models tsp",
        generate: "neuroute generate cvrp --n 50 --count 100 --out mine.npz",
        export: "neuroute export mine.npz --to folder",
        import_weights: "neuroute import-weights lehd.pt --out lehd.safetensors",
    },
    "Papers, stage by stage": {
        plan: "neuroute plan table12 --scale laptop",
        why: "neuroute why results/table12.csv",
        label: "neuroute label tsp_uniform_val_n20_c32_concorde",
        render: "neuroute render scaling/table12",
        report: "neuroute report",
        claims: "neuroute claims --kept docs/measured/laptop",
        difference: "neuroute difference scaling/base_6x128 scaling/base_42x128",
        verify: "neuroute verify results/table2.csv",
        keep: "neuroute keep docs/measured/mine",
    },
    "Set-up": {
        init: "neuroute init my-study --paper mynet",
        doctor: "neuroute doctor",
        fetch: "neuroute fetch tsplib",
        schema: "neuroute schema",
    },
}


class _Grouped(TyperGroup):
    """Lists commands below their headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, commands in COMMANDS.items():
            with formatter.section(heading):
                names = (command.__name__.replace("_", "-") for command in commands)
                summaries = ((command.__doc__ or "").partition("\n")[0] for command in commands)
                formatter.write_dl(list(zip(names, summaries, strict=True)))


app = typer.Typer(
    cls=_Grouped,
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
    """Turn a NeurouteError into one line and exit code 2, or 75 where another attempt may do, and an interruption into
    what there was and 130.
    """

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        handler = logging.StreamHandler()
        handler.setFormatter(_Lines("%(asctime)s %(name)s: %(message)s", "%H:%M:%S"))
        logging.basicConfig(level=logging.INFO, handlers=[handler])
        for chatty in ("fontTools", "torch"):  # a page of lines for each figure; statistics at the end
            logging.getLogger(chatty).setLevel(logging.WARNING)
        with redirect_stdout(cast(TextIO, _Plain(sys.stdout))):
            try:
                if callable(signal.getsignal(signal.SIGINT)):
                    signal.signal(signal.SIGINT, signal.default_int_handler)
                command(*args, **kwargs)
            except NeurouteError as error:
                print(f"error: {error}", file=sys.stderr)
                raise typer.Exit(TEMPORARY if may_pass(error) else 2) from None
            except Interrupted as stop:
                print("interrupted: there is no solution yet" if stop.best is None else stop.best)
                raise typer.Exit(130) from None
            except KeyboardInterrupt as stop:
                print(f"interrupted: {str(stop) or 'run the same command again'}", file=sys.stderr)
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


def _refuse(name: str, why: str) -> None:
    """Stand for a command whose package is not installed, or cannot be imported."""

    def command() -> None:
        raise NeurouteError(f"{name}: {why}")

    anything = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    app.command(name, hidden=True, context_settings=anything)(_guarded(command))


for _name, _point in entries("neuroute.commands").items():
    try:
        for _heading, _commands in load(_point).items():
            COMMANDS.setdefault(_heading, {}).update(_commands)
    except NeurouteError as _error:
        _refuse(_name, str(_error))
for _name in BESIDE.keys() - entries("neuroute.commands").keys():
    _refuse(_name, how_to_get(_name))
for _commands in COMMANDS.values():
    for _command, _example in _commands.items():
        app.command(epilog=f"Example: {_example}")(_guarded(_command))
app.command(hidden=True)(_guarded(warm))
