"""Kept measurements as an RO-Crate: each file, its checksum, and what it was made from (ro-crate-metadata.json).

https://w3id.org/ro/crate/1.1; made of what `<artifact>.json` states, so it can be read without the work folder.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from neuroute.core.errors import NeurouteError
from neuroute.core.source import short_commit, source

if TYPE_CHECKING:
    from rocrate.model.contextentity import ContextEntity
    from rocrate.rocrate import ROCrate

METADATA = "ro-crate-metadata.json"
FORMATS = {".csv": "text/csv", ".png": "image/png", ".md": "text/markdown"}
VERSION = "1.1"  # of the format: the one that most services read
LICENSE = "https://spdx.org/licenses/MIT"


def write_crate(folder: Path, scale: str, kept: Mapping[Path, Mapping[str, Any]]) -> Path:
    """Describe all files that lie in a folder of kept measurements; the file that does.

    Args:
        folder: of what was kept; of files that are described there already only the checksum is taken anew.
        scale: at which it was measured.
        kept: the files of each artifact that is kept now -> what its .json states.

    Raises NeurouteError if the folder's description of before cannot be read.
    """
    from rocrate.model.contextentity import ContextEntity
    from rocrate.rocrate import ROCrate

    try:
        crate = ROCrate(folder if (folder / METADATA).exists() else None, version=VERSION)
    except (KeyError, ValueError) as error:
        raise NeurouteError(f"{folder / METADATA}: not an RO-Crate ({error}); delete it and keep again") from None
    root = crate.root_dataset
    crate.name = f"What neuroute measured at scale {scale}"
    crate.description = "Tables and figures of papers on neural routing, drawn from measurements: one CSV each."
    root["datePublished"] = datetime.date.today().isoformat()
    root["license"] = crate.add(ContextEntity(crate, LICENSE, properties={"@type": "CreativeWork", "name": "MIT"}))
    authors = {"@type": "Organization", "name": "The neuroute authors"}
    root["author"] = root["publisher"] = crate.add(ContextEntity(crate, "#authors", properties=authors))
    for path in sorted(file for file in folder.rglob("*") if file.suffix in FORMATS):
        name = path.relative_to(folder).as_posix()
        entity = crate.get(name) or crate.add_file(path, name)
        entity["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        entity["encodingFormat"], entity["contentSize"] = FORMATS[path.suffix], str(path.stat().st_size)
        entity["name"] = kept[path]["title"] if path in kept else entity.get("name") or path.stem
    artifacts: dict[str, tuple[Mapping[str, Any], list[Path]]] = {}
    for path, about in kept.items():
        artifacts.setdefault(f"{about['paper']}/{about['name']}", (about, []))[1].append(path)
    for artifact, (about, files) in artifacts.items():
        action = crate.add(ContextEntity(crate, f"#draw/{artifact}", properties={"@type": "CreateAction"}))
        action["name"] = f"{artifact}: {about['title']}"
        action["result"] = _one_or_all([crate.get(file.relative_to(folder).as_posix()) for file in files])
        action["endTime"] = datetime.date.today().isoformat()
        made_from = about.get("made_from", {})
        action["instrument"] = _one_or_all(_instruments(crate, made_from))
        if objects := list(_objects(crate, scale, made_from)):
            action["object"] = _one_or_all(objects)
        if action.id not in [each.id for each in root.get("mentions", [])]:
            root.append_to("mentions", action)
    crate.metadata.write(folder)
    return folder / METADATA


def _one_or_all(entities: Sequence[ContextEntity]) -> ContextEntity | Sequence[ContextEntity]:
    """Several as a list, one alone."""
    return entities[0] if len(entities) == 1 else entities


def _objects(crate: ROCrate, scale: str, made_from: Mapping[str, Any]) -> Iterator[ContextEntity]:
    """Yield measurements, weights and labels, each with its checksum."""
    from rocrate.model.contextentity import ContextEntity

    digests: list[tuple[str, str, str | None]] = []
    digests += [("evaluation", e, about.get("values_sha256")) for e, about in made_from.get("evaluations", {}).items()]
    digests += [("weights", run, about.get("weights_sha256")) for run, about in made_from.get("runs", {}).items()]
    digests += [("labels", job, digest) for job, digest in made_from.get("labels", {}).items()]
    for kind, name, digest in digests:
        properties = {"@type": "CreativeWork", "name": f"{kind} {name}", "identifier": f"sha256:{digest}"}
        yield crate.add(ContextEntity(crate, f"#{scale}/{kind}/{name}/{(digest or '')[:16]}", properties=properties))


def _instruments(crate: ROCrate, made_from: Mapping[str, Any]) -> Sequence[ContextEntity]:
    """The versions of the package that trained, measured and drew."""
    from rocrate.model.contextentity import ContextEntity

    versions = {short_commit(each): each for each in [*sources(made_from), made_from.get("source") or source()]}
    return [
        crate.add(
            ContextEntity(
                crate,
                quote(f"#neuroute/{commit or each['version']}", safe="#/"),
                properties={
                    "@type": "SoftwareApplication",
                    "name": "neuroute",
                    "softwareVersion": f"{each['version']}, commit {commit}" if commit else each["version"],
                },
            )
        )
        for commit, each in versions.items()
    ]


def sources(made_from: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The versions of the package that trained and measured, as far as they are stated."""
    every = [*made_from.get("runs", {}).values(), *made_from.get("evaluations", {}).values()]
    return [each["source"] for each in every if each.get("source")]
