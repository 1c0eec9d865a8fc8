"""The names of decodings: one each, in records, tables, lines, options and Python."""

import re
from typing import Any, get_args

from neuroute.core.errors import NeurouteError
from neuroute.plan.decodings import Decoding, Start

# Parts of `Decoding.id`, in words.  They stand here, as digests of trainings cover the class, and no name trains.
WORDS = (
    (r"\bmulti(?=\d|-|$)", "multistart"),
    (r"-i(?=\d)", "-images"),
    (r"-d(?=\d)", "-draw"),
    (r"-r(?=\d)", "-mean"),
    (r"-b(?=\d)", "-batch"),
    (r"-x(?=best|\d[\d.]*[.e])", "-rescale"),
)
_FIRST = r"(?:greedy|multistart(?P<starts>[1-9]\d*)?)(?P<augment>-x8)?"
_SEARCH = r"(?P<method>beam|rrc)(?P<number>[1-9]\d*)(?:-multistart(?P<starts>[1-9]\d*)?)?"
_PRC = rf"prc(?P<number>[1-9]\d*)(?:-(?P<start>{'|'.join(get_args(Start))}))?"
EXAMPLES = "greedy, multistart, multistart5, multistart-x8, beam16, rrc100, prc100 or prc100-insertion"


def name_of(decoding: Decoding) -> str:
    """Return what a decoding is called.

    `greedy` builds one solution from one start, `multistart` one from every start of which the best counts,
    `multistart5` from five starts; `-x8` adds the eight symmetric images, `-images16` 16 random ones; `beam16`,
    `rrc100` and `prc100-insertion` search; `-mean3` is the mean of three draws, `-rescale0.5` what the network sees.
    """
    name = decoding.id
    for short, word in WORDS:
        name = re.sub(short, word, name)
    return name


def parse_decoding(name: str) -> Decoding:
    """Return the decoding of a name, the inverse of `name_of` for those that users ask for.

    Raises NeurouteError, with examples, for any other text.
    """
    if match := re.fullmatch(_PRC, name, re.ASCII):
        return Decoding.model_validate(
            {"method": "prc", "iterations": match["number"], "start": match["start"] or "greedy"}
        )
    match = re.fullmatch(_FIRST, name, re.ASCII) or re.fullmatch(_SEARCH, name, re.ASCII)
    if match is None:
        raise NeurouteError(f"decoding '{name}': no such name; give one such as {EXAMPLES}")
    how: dict[str, Any] = {"starts": match["starts"] or "all"} if "multistart" in name else {}
    if method := match.groupdict().get("method"):
        how |= {"method": method, {"beam": "beam", "rrc": "iterations"}[method]: match["number"]}
    else:
        how |= {"augment": match["augment"] is not None}
    return Decoding.model_validate(how)
