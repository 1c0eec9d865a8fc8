"""What there is to do, and what there is to do it with: plan, doctor, schema."""

import json
from pathlib import Path
from typing import Annotated

import typer

from neuroute.cli.options import Changes, ConfigFile, ScaleName, load_plan


def plan(
    target: Annotated[
        str | None, typer.Argument(help="a paper (sit), table12, scaling/figure2, a run ... ; default: everything")
    ] = None,
    lists_all: Annotated[bool, typer.Option("--all", help="list every job, of whole papers, too")] = False,
    config: ConfigFile = None,
    scale: ScaleName = None,
    changes: Changes = None,
) -> None:
    """List what a target needs and costs before anything runs."""
    from neuroute.accounting.estimate import describe

    print(describe(load_plan(config, scale, changes=changes), target, lists_all=lists_all))


def doctor(
    is_measuring: Annotated[
        bool, typer.Option("--measure", help="measure this machine's rates, for `neuroute plan`: some minutes")
    ] = False,
    config: ConfigFile = None,
) -> None:
    """Say which solvers are there, and how to get the others.

    Each solves a small instance.  Say, too, which package does the work of each one that was asked for.
    """
    from neuroute.solvers.doctor import examine, packages

    if is_measuring:
        from neuroute.accounting.measure import measure
        from neuroute.accounting.rates import keep_rates
        from neuroute.plan.config import load_config

        print(keep_rates(load_config(config), measure(print)))
        return

    for finding in examine():
        print(finding.line())
    from neuroute.kernels.library import describe

    print(f"operators on this CPU: {describe()}")
    print("asked for           done by")
    for line in packages():
        print(line)


def schema(
    folder: Annotated[Path, typer.Argument(help="where to write")] = Path("workflow/schemas"),
) -> None:
    """Write the JSON schemas of config.yaml and of scale files."""
    from neuroute.core.files import write_text
    from neuroute.plan.config import schemas

    for name, values in schemas().items():
        write_text(folder / f"{name}.schema.json", json.dumps(values, indent=1, sort_keys=True) + "\n")
