"""Keep what was measured: the rendered artifacts of a scale, with commit, date and device in every row."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Iterable
from pathlib import Path

from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, write_text, write_whole
from neuroute.core.lazy import pd
from neuroute.core.text import csv_text
from neuroute.rendering.style import with_suffix


def keep(results: Path, stems: Iterable[Path], scale: str, folder: Path, commit: str | None) -> list[Path]:
    """Copy each artifact drawn at `scale` into `folder`: its CSV with provenance, and a figure's PNG.

    Each lies where it does in `results`: those of other papers than the headline's in a folder of their own.
    Raises NeurouteError when none was drawn at that scale, or when the commit is not known.
    """
    provenance = {"commit": commit or head(), "date": datetime.date.today().isoformat()}
    copies = []
    for stem in stems:
        if not with_suffix(stem, "json").is_file():
            continue
        about = read_json(with_suffix(stem, "json"), "draw it again", "kind", "measured_on")
        on = about["measured_on"]
        if on["scale"] != scale:
            continue
        table = pd.read_csv(with_suffix(stem, "csv"))
        table = table.assign(**{"device": "; ".join(on.get("devices", [])) or "none", **provenance})
        to = folder / stem.relative_to(results)
        write_text(with_suffix(to, "csv"), csv_text(table))
        if about["kind"] == "figure":
            picture = with_suffix(stem, "png").read_bytes()
            write_whole(with_suffix(to, "png"), lambda file, picture=picture: file.write(picture))  # type: ignore[misc]
        copies.append(with_suffix(to, "csv"))
    if not copies:
        raise NeurouteError(f"nothing was drawn at scale {scale}; run `snakemake all --config scale={scale}` first")
    return copies


def head() -> str:
    """The commit of the checkout.  Raises NeurouteError where there is none."""
    try:
        process = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise NeurouteError("the commit is not known (no git checkout here); give --commit") from None
    return process.stdout.strip()
