"""Text files in parts: `KEY : value` lines of TSPLIB and VRPLIB, and tables of numbers, which `vrplib` reads.

vrplib drops the numbers of nodes, keeps the last of two equal keys and takes `1_0` for 10; so lines are checked here,
and it meets plain numbers, as many in each row.
"""

import logging
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from vrplib.parse import parse_vrplib

from neuroute.core.errors import NeurouteError, did_you_mean
from neuroute.core.files import read_bytes

log = logging.getLogger(__name__)
COLUMNS = {  # of a row; numbers of other sections break into lines anywhere
    "NODE_COORD_SECTION": "node x y",
    "DEMAND_SECTION": "node demand",
    "SERVICE_TIME_SECTION": "node time",
    "TIME_WINDOW_SECTION": "node opens closes",
    "VEHICLE": "vehicles capacity",
    "CUSTOMER": "number x y demand opens closes time",  # Solomon's
}
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
LONGEST = 40  # characters of a number
SLIP = 0.85  # likeness of a name that is meant: EDGE_DATA_FORMAT is no slip for EDGE_WEIGHT_FORMAT
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}  # with which a file may begin


class NotRead(NeurouteError):
    """A whole file of something that is not solved here."""


@dataclass(frozen=True)
class Parts:
    """A file in parts; `where` names it in messages, `ignored` what was left out of it on request."""

    where: str
    header: dict[str, str]
    rows: dict[str, list[tuple[int, str]]]  # section -> (line number, text)
    ignored: tuple[str, ...] = ()

    def table(self, section: str) -> np.ndarray:
        """Return the numbers of a section, float64 (rows, columns).

        Raises NeurouteError, naming the line, for a row that is not as `COLUMNS` says, in plain digits.
        """
        columns, rows = COLUMNS.get(section, ""), self.rows.get(section, [])
        width = len(columns.split()) or 1
        if not columns:
            rows = [(number, word) for number, line in rows for word in line.split()]
        for number, line in rows:
            words = line.split()
            if len(words) != width or not all(len(w) <= LONGEST and NUMBER.fullmatch(w) for w in words):
                cut = "; is the file cut short?" if number == rows[-1][0] and len(words) < width else ""
                raise NeurouteError(
                    f"{self.where}, line {number}: expected `{columns or 'numbers'}` in plain digits, got "
                    f"`{line[:60]}`{cut}"
                )
        text = "\n".join(["TABLE_SECTION", *(f"{place} {line}" for place, (_, line) in enumerate(rows))])
        table = np.array(parse_vrplib(text, compute_edge_weights=False)["table"], dtype=np.float64)
        return table.reshape(-1, width)

    def line(self, section: str, row: int) -> str:
        """Return where a row of a section is, for messages."""
        return f"{self.where}, line {self.rows[section][row][0]}"


def read_text(path: Path, what: str) -> str:
    """Return the text of a file, in UTF-8, in UTF-16 with its mark, or with a warning in Latin-1.

    Raises NeurouteError, naming `what` is expected, if it is no text.
    """
    data = read_bytes(path)
    try:
        text = data.decode(MARKS.get(data[:2], "utf-8-sig"))
    except UnicodeDecodeError as error:
        line = 1 + data.count(b"\n", 0, error.start)
        text = data.decode("cp1252", errors="replace")  # Windows' Latin-1
        if not CONTROL.search(text):
            log.warning("%s, line %d: not in UTF-8; read as Latin-1", path, line)
    if match := CONTROL.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise NeurouteError(f"{path}, line {line}: not a text file (has {match[0]!r}); {what} is expected")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def whole(text: str) -> int | None:
    """Return a whole number from 0 on in at most 9 digits, so that sums over an instance stay exact; else None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def split(text: str, where: str, ignore: Collection[str] = ()) -> Parts:
    """Return a file's parts up to EOF, without keys and sections that are ignored.

    Raises NeurouteError for a key or a section that is there twice, and for lines that belong to none.
    """
    header: dict[str, str] = {}
    rows: dict[str, list[tuple[int, str]]] = {}
    current: list[tuple[int, str]] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line.rstrip(" :").upper() == "EOF":
            break
        if not line or line[0] == "#":
            continue
        key, colon, value = line.partition(":")
        section = line.split()[0].rstrip(":").upper()
        if section.endswith("_SECTION"):
            if section in rows:
                raise NeurouteError(f"{where}, line {number}: a second {section}; put its rows into one")
            if line[len(section) :].strip(" \t:"):
                raise NeurouteError(f"{where}, line {number}: more than {section} on its line; put rows below it")
            current = rows[section] = []
        elif colon and not line[0].isdigit():
            key = key.strip().upper()
            if key in header and key != "COMMENT":
                raise NeurouteError(
                    f"{where}, line {number}: {key} says {value.strip()[:60]}, and {header[key][:60]} above; leave one"
                )
            header[key] = value.strip()
        elif current is None:
            raise NeurouteError(f"{where}, line {number}: `{line[:60]}` is in no section, and no `KEY : value`")
        else:
            current.append((number, line))
    ignored = tuple(name for name in map(str.upper, ignore) if name in header or name in rows)
    for name in ignored:
        header.pop(name, None), rows.pop(name, None)
    return Parts(where, header, rows, ignored)


def check_known(parts: Parts, names: Iterable[str], kind: str) -> None:
    """Raises NotRead for a key or a section that is not among these names: what it asks is not followed."""
    for is_section, there in ((False, parts.header), (True, parts.rows)):
        stems = {name.removesuffix("_SECTION"): name for name in names if name.endswith("_SECTION") == is_section}
        for name in there:
            if name.removesuffix("_SECTION") not in stems:
                slips = get_close_matches(name.removesuffix("_SECTION"), stems, 1, SLIP)
                raise NotRead(
                    f"{parts.where}: {name[:60]} is not supported for TYPE {kind}"
                    f"{did_you_mean(stems[stem] for stem in slips)}; remove it, or solve without it "
                    f"(--ignore-section {name[:60]})"
                )


def places(parts: Parts, section: str, table: np.ndarray, what: str) -> dict[int, int]:
    """Return the row of each node in a table, of whose rows the first number is the node's.

    Raises NeurouteError, naming the line, for a node that comes twice or has no whole number from 0 on.
    """
    rows: dict[int, int] = {}
    for place, number in enumerate(table[:, 0].tolist()):
        if number % 1 or not 0 <= number < 1e9:
            raise NeurouteError(f"{parts.line(section, place)}: node {number:g}; number nodes by whole numbers from 0")
        if number in rows:
            raise NeurouteError(f"{parts.line(section, place)}: node {number:g} has {what} twice; give it one line")
        rows[int(number)] = place
    return rows


def of_nodes(parts: Parts, section: str, nodes: Collection[int], what: str, largest: float | None = None) -> np.ndarray:
    """Return the values of a section (nodes, columns), in the order of the nodes.

    largest: of whole numbers from 0 on, None: any finite numbers.  Raises NeurouteError, naming line or node.
    """
    table = parts.table(section)
    values = table[:, 1:]
    bad = ~np.isfinite(values) if largest is None else (values % 1 != 0) | (values < 0) | (values > largest)
    if bad.any():
        row = int(np.argmax(bad.any(1)))
        kind = "finite numbers" if largest is None else "whole numbers from 0 on, of at most 9 digits"
        text = parts.rows[section][row][1]
        raise NeurouteError(f"{parts.line(section, row)}: expected `{COLUMNS[section]}` in {kind}, got `{text[:60]}`")
    rows = places(parts, section, table, what)
    if differ := rows.keys() ^ set(nodes):
        node = min(differ)
        raise NeurouteError(
            f"{parts.where}: node {node} has no {what if node not in rows else 'coordinates'}; every node needs both"
        )
    return values[[rows[node] for node in nodes]]
