"""Keep what was measured: the rendered artifacts of a scale, with commit, date and device in every row."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, write_text, write_whole
from neuroute.core.lazy import pd
from neuroute.core.source import short_commit, source
from neuroute.core.text import csv_text
from neuroute.pipeline.rendering.crate import sources
from neuroute.pipeline.rendering.style import with_suffix


def keep(results: Path, stems: Iterable[Path], scale: str, folder: Path, commit: str | None) -> dict[Path, Any]:
    """Copy each artifact drawn at `scale` into `folder`: its CSV with provenance, and a figure's PNG.

    Returns each file with what the artifact's .json states.

    Each lies where it does in `results`: those of other papers than the headline's in a folder of their own.
    Raises NeurouteError when none was drawn at that scale, or when the commit is not known.
    """
    date = datetime.date.today().isoformat()
    kept = dict[Path, Any]()
    for stem in stems:
        if not with_suffix(stem, "json").is_file():
            continue
        about = read_json(with_suffix(stem, "json"), "draw it again", "paper", "name", "title", "kind", "measured_on")
        on = about["measured_on"]
        if on["scale"] != scale:
            continue
        table = pd.read_csv(with_suffix(stem, "csv"))
        devices = "; ".join(on.get("devices", [])) or "none"
        table = table.assign(device=devices, commit=commit or _commit(about), date=date)
        to = folder / stem.relative_to(results)
        write_text(with_suffix(to, "csv"), csv_text(table))
        if about["kind"] == "figure":
            picture = with_suffix(stem, "png").read_bytes()
            write_whole(with_suffix(to, "png"), lambda file, picture=picture: file.write(picture))  # type: ignore[misc]
            kept[with_suffix(to, "png")] = about
        kept[with_suffix(to, "csv")] = about
    if not kept:
        raise NeurouteError(f"nothing was drawn at scale {scale}; run `snakemake all --config scale={scale}` first")
    return kept


def _commit(about: Mapping[str, Any]) -> str:
    """The commits that trained and measured, where they are stated, else the current one.

    Raises NeurouteError if none is known.
    """
    stated = {commit for each in sources(about.get("made_from", {})) if (commit := short_commit(each))}
    commits = sorted(stated) or [commit for commit in [short_commit(source())] if commit]
    if not commits:
        raise NeurouteError("the commit is not known (no git checkout here); give --commit")
    return "; ".join(commits)
