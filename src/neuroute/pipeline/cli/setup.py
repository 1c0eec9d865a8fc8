"""Set-up: init, doctor, fetch, schema."""

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
from neuroute.pipeline.cli.options import ConfigFile, load_plan


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


def fetch(
    benchmark: Annotated[str, typer.Argument(help="tsplib, cvrplib, solomon, national, vlsi or dimacs")],
    to: Annotated[Path | None, typer.Option(help="folder; default: <work_dir>/benchmarks/<benchmark>")] = None,
    config: ConfigFile = None,
) -> None:
    """Download a public benchmark and check it.

    Uses the copy in `benchmarks_dir` of the config, if set.  Files that cannot be downloaded are listed; tables then
    show the packaged instances.
    """
    from neuroute.datasets.benchmarks import library
    from neuroute.datasets.fetch import fetch as fetch_files
    from neuroute.datasets.fetch import provide

    library(benchmark)  # an unknown one ends here, before a config is read
    if to is not None:
        missing = fetch_files(benchmark, to).missing
        if missing:
            first = next(iter(missing.values()))
            raise NeurouteError(f"{to}: {len(missing)} files of {benchmark} are missing; run this again: {first}")
        return
    p = load_plan(config, None)
    manifest = p.benchmark_manifest(benchmark)
    own_copy = Path(p.config.benchmarks_dir) if p.config.benchmarks_dir else None
    provide(benchmark, manifest, manifest.with_suffix(""), own_copy)


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
    from neuroute.pipeline.plan.paper import all_papers

    if not re.fullmatch("[a-z][a-z0-9_]*", paper) or keyword.iskeyword(paper):
        raise NeurouteError(
            f"--paper {paper}: give lower-case letters, digits and '_': it names a module, as in my_net"
        )
    if paper in all_papers() or importlib.util.find_spec(paper) is not None:
        raise NeurouteError(f"--paper {paper}: a paper or module of this name exists; give another name")
