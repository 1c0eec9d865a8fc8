"""What there is to do, and what there is to do it with: plan, doctor, schema."""

import importlib.util
import keyword
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from neuroute.core.errors import NeurouteError
from neuroute.core.source import PARTS
from neuroute.pipeline.cli.options import Changes, ConfigFile, ScaleName, load_plan


def plan(
    target: Annotated[
        str | None, typer.Argument(help="a paper (sit), table12, scaling/figure2, a run ... ; default: everything")
    ] = None,
    lists_all: Annotated[bool, typer.Option("--all", help="list every job")] = False,
    array: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="write the jobs as SLURM job arrays into this folder")
    ] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
    changes: Changes = None,
) -> None:
    """List the jobs, time and disk of a target; nothing runs."""
    from neuroute.pipeline.plan.overview import describe
    from neuroute.pipeline.plan.slurm import write_arrays

    if array and changes:
        raise NeurouteError("--array: its jobs read the config file alone; write there what --set changes")
    p = load_plan(config, scale, changes=changes)
    if array:
        print(*write_arrays(p, target, array, config, scale), sep="\n")
    else:
        print(describe(p, target, lists_all=lists_all))


def why(
    target: Annotated[str | None, typer.Argument(help="as of `neuroute plan`; default: everything")] = None,
    config: ConfigFile = None,
    scale: ScaleName = None,
    changes: Changes = None,
) -> None:
    """Say what would rerun for a target, and why: `learning_rate: 0.002 -> 0.0002`."""
    from neuroute.pipeline.plan.overview import why as causes

    for line in causes(load_plan(config, scale, changes=changes), target):
        print(line)


def doctor() -> None:
    """List the installed solvers, and how to install others.

    Each solves a small instance.  Say, too, which package does the work of each one that was asked for.
    """
    from neuroute.solvers.registry import examine, packages

    for line in examine():
        print(line)
    from neuroute.networks.kernels.library import describe

    print(f"operators on this CPU: {describe()}")
    print("asked for           used")
    for line in packages():
        print(line)


def schema(folder: Annotated[Path, typer.Argument(help="where to write")] = Path("workflow/schemas")) -> None:
    """Write the JSON schemas of config.yaml and of scale files."""
    from neuroute.core.files import write_json
    from neuroute.pipeline.plan.config import schemas

    for name, values in schemas().items():
        write_json(folder / f"{name}.schema.json", values)


# -- a folder to work in ----------------------------------------------------------------------------------------------

PACKED = Path(__file__).resolve().parents[2] / "checkout"  # setup.py puts it into wheels
CHECKOUT = Path(__file__).resolve().parents[4]  # where the package is not installed from a wheel
EXAMPLE = "toy"  # the paper that a new one begins as


def init(
    folder: Annotated[Path, typer.Argument(help="folder, new or existing")] = Path(),
    paper: Annotated[
        str | None, typer.Option(help="also write a paper of this name: network, table, figure, test")
    ] = None,
) -> None:
    """Set up a working folder, with --paper also a paper of your own.

    Snakefile, rules, scales, config.yaml and the worked examples.
    """
    source = PACKED if PACKED.is_dir() else CHECKOUT
    if paper is not None:
        _check_name(paper)
    parts = [part for part in PARTS if (source / part).exists()]
    tops = list(dict.fromkeys(Path(part).parts[0] for part in parts))
    if there := [part for part in tops if (folder / part).exists()]:
        raise NeurouteError(f"{folder / there[0]}: exists; name another folder, or move it away")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".neuroute-") as name:
            copy = Path(name)
            for part in parts:
                (copy / part).parent.mkdir(parents=True, exist_ok=True)
                if (source / part).is_dir():
                    shutil.copytree(source / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(source / part, copy / part)
            if paper is not None:
                # Write a paper that begins as the worked example, with a network of its own.
                examples = copy / "docs" / "examples"
                files = {file.relative_to(examples / "start"): file for file in (examples / "start").iterdir()}
                files |= {file.relative_to(examples): file for file in (examples / "papers" / EXAMPLE).glob("*.py")}
                files[Path(f"{EXAMPLE}.yaml")] = examples / f"{EXAMPLE}.yaml"
                for relative, file in files.items():
                    text = file.read_text().replace("neuroute.networks.decoder_only:DecoderOnly", f"{EXAMPLE}:Net")
                    text = text.replace("Toy", paper.title().replace("_", "")).replace('"A toy"', f'"{paper}"')
                    to = copy / str(relative).replace(EXAMPLE, paper).replace("gitignore", ".gitignore")
                    to.parent.mkdir(parents=True, exist_ok=True)
                    to.write_text(re.sub(rf"\b(test_)?{EXAMPLE}\b", rf"\1{paper}", text))
            made = sorted(path.name for path in copy.iterdir())
            for each in made:
                os.replace(copy / each, folder / each)
    except OSError as error:
        raise NeurouteError(f"{folder}: cannot be written ({error.strerror}); choose another place") from None
    print(f"{folder.resolve()}: {', '.join(made)}; next: neuroute plan")


def _check_name(paper: str) -> None:
    """Raises NeurouteError for what names no module, or names one that is there."""
    from neuroute.pipeline.plan.papers import all_papers

    if not re.fullmatch("[a-z][a-z0-9_]*", paper) or keyword.iskeyword(paper):
        raise NeurouteError(
            f"--paper {paper}: give lower-case letters, digits and '_': it names a module, as in my_net"
        )
    if paper in all_papers() or importlib.util.find_spec(paper) is not None:
        raise NeurouteError(f"--paper {paper}: a paper or module of this name exists; give another name")
