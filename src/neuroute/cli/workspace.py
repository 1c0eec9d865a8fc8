"""A folder to work in, where the package was installed without a checkout."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from neuroute.core.errors import NeurouteError

PACKED = Path(__file__).resolve().parents[1] / "checkout"  # setup.py puts it into wheels


def init(folder: Annotated[Path, typer.Argument(help="where to; made if it is not there")] = Path()) -> None:
    """Copy the workflow into a folder to work in.

    Snakefile, rules, scales, config.yaml and the worked examples.
    """
    if not PACKED.is_dir():
        raise NeurouteError(f"this neuroute is a checkout: work in {PACKED.parents[2]}, which has the workflow")
    parts = sorted(path.name for path in PACKED.iterdir())
    if there := [part for part in parts if (folder / part).exists()]:
        raise NeurouteError(f"{folder / there[0]}: is there already; name another folder, or move it away")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".neuroute-") as copy:
            shutil.copytree(PACKED, copy, dirs_exist_ok=True)
            for part in parts:
                os.replace(Path(copy, part), folder / part)
    except OSError as error:
        raise NeurouteError(f"{folder}: cannot be written ({error.strerror}); choose another place") from None
    print(f"{folder.resolve()}: {', '.join(parts)}; next: neuroute plan")
