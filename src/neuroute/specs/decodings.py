"""How solutions are built from a model: in full, by one name, or by options of the command line."""

import math
import re
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from neuroute.core.errors import NeurouteError
from neuroute.core.yaml_files import validate
from neuroute.problems.longest import SHORTEST
from neuroute.specs.data import Spec

# What is improved: the model's own solution, or a solver's.
Dotted = Annotated[str, Field(pattern=r"^\w+(\.\w+)*:\w+$")]
Start = Literal["greedy", "insertion", "insertion-angle", "insertion-published", "nearest"]


class Revision(Spec):
    """How tours are rebuilt in blocks of fixed sizes (Ye et al., 2024)."""

    # Nodes of a block, and how often tours are cut into such blocks; one size after the other.
    blocks: tuple[tuple[Annotated[int, Field(ge=4)], Annotated[int, Field(ge=1)]], ...] = Field(min_length=1)
    width: int = Field(default=1, ge=1)  # random insertions that tours start from
    prune: bool = True  # only the best of them goes on after the blocks of the first size
    flips: Literal["none", "blocks", "tours"] = "blocks"  # what is mirrored: each block four times, or each first tour

    @property
    def id(self) -> str:
        """100x20-50x25-20x5-w10-all-noflips."""
        name = "-".join(f"{nodes}x{iterations}" for nodes, iterations in self.blocks)
        name += (f"-w{self.width}" if self.width > 1 else "") + ("" if self.prune else "-all")
        return name + {"none": "-noflips", "blocks": "", "tours": "-tourflips"}[self.flips]


class Decoding(Spec):
    """How solutions are built from a model.

    With `milestones`, re-construction is measured after each of these numbers of iterations in one go, 0 (what it
    starts from) included; each becomes a record of its own.
    """

    # A dotted name: of a system's own way, `decode.OwnWay`.
    method: Literal["greedy", "beam", "rrc", "prc", "revise"] | Dotted = "greedy"
    beam: int = 1
    iterations: int = 0  # of random (rrc, after greedy) or parallel local (prc) re-construction
    start: Start = "greedy"  # of prc; revise always starts from insertion
    # Most stops of a sub-path; None: prc has l_max 1000, or all stops of shorter solutions; rrc has all.
    longest: int | None = Field(default=None, ge=4)
    rule: Literal["cut-off", "from-the-end"] = "cut-off"  # by which prc cuts CVRP solutions: the paper's, the code's
    most_blocks: int | None = Field(default=None, ge=1)  # that prc rebuilds of one solution in one iteration
    milestones: tuple[int, ...] = ()
    log_n: bool = True  # the log(n) attention factor (scaling, Eq. 16)
    esf: bool = False  # the entropy scaling factor log_{n_train}(n) instead, n what is left (pens, Appendix A.3)
    batch_size: int | None = None  # None: as many instances as the memory budget holds
    rescale: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["best"] = 1.0  # of what the network sees
    # Of a network of many: the best is taken, or what rrc starts from; a beam searches from each.
    starts: Annotated[int, Field(ge=1)] | Literal["all"] = 1
    augment: bool = False  # with the eight symmetric images of each instance (POMO)
    # With so many random images of each instance, itself the first.
    images: int = Field(default=1, ge=1, exclude_if=lambda images: images == 1)
    solver: str | None = Field(default=None, exclude_if=lambda name: name is None)  # that a system's own way asks
    draw: int = Field(default=0, ge=0)  # which random embeddings, images and sub-paths
    repeats: int = Field(default=1, ge=1)  # solutions of each instance, draws from `draw` on: lengths are their means
    cached: bool = True  # what does not change from step to step is computed once; no other tours
    # Of method 'revise': as published for drawn instances, or for TSPLIB, with the network's blocks; or stated.  The
    # default is left out of the text, which is as old as the other methods are.
    revision: Revision | Literal["usual", "library"] = Field(default="usual", exclude_if=lambda how: how == "usual")

    @model_validator(mode="after")
    def _parts_go_together(self) -> "Decoding":
        if self.start != "greedy" and self.method not in ("prc", "revise"):
            raise ValueError(f"start: {self.start} is for method 'prc', not '{self.method}'")
        if self.revision != "usual" and self.method != "revise":
            raise ValueError(f"revision is for method 'revise', not '{self.method}'")
        if self.method == "revise" and (self.start != "insertion" or self.starts != 1 or self.augment):
            raise ValueError("revise starts from `start: insertion`; `width` and `flips` of its revision say the rest")
        if self.starts != 1 and self.method == "prc":
            raise ValueError("starts: re-construction in parallel begins with one solution; leave starts out")
        if self.starts != 1 and self.is_own:
            raise ValueError(f"starts: {self.method} chooses them; leave starts out")
        if (self.augment or self.images > 1) and self.method != "greedy":
            raise ValueError(f"augment and images are for method 'greedy', not '{self.method}'")
        if self.augment and self.images > 1:
            raise ValueError("augment has eight images of its own; leave `images` out")
        return self

    @property
    def is_own(self) -> bool:
        """Whether the method is a system's own."""
        return ":" in self.method

    @property
    def name(self) -> str:
        """Its one name, in records, tables, lines, options and Python.

        `greedy` builds one solution from one start, `multistart` one from every start of which the best counts,
        `multistart5` from five starts; `-x8` adds the eight symmetric images, `-images16` 16 random ones; `beam16`,
        `rrc100` and `prc100-insertion` search; `-mean3` is the mean of three draws, `-rescale0.5` what the network
        sees.
        """
        name = {
            "greedy": self._greedy,
            "beam": f"beam{self.beam}" + self._from_starts,
            "rrc": f"rrc{self.iterations}{self._from_starts}{self._up_to}" if self.iterations else self._greedy,
            "prc": self._prc,
            "revise": f"revise{self.revision.id}" if isinstance(self.revision, Revision) else f"revise-{self.revision}",
        }.get(self.method) or self.method.partition(":")[2] + (f"-beam{self.beam}" if self.beam > 1 else "")
        name += ("" if self.log_n else "-nolog") + ("-esf" if self.esf else "")
        name += "" if self.rescale == 1 else f"-rescale{self.rescale}"
        name += (f"-draw{self.draw}" if self.draw else "") + (f"-mean{self.repeats}" if self.repeats > 1 else "")
        return name + (f"-batch{self.batch_size}" if self.batch_size else "") + ("" if self.cached else "-uncached")

    @property
    def solvers(self) -> tuple[str, ...]:
        """The solvers that have a part in it: of what is improved, and of parts that a system's own way takes."""
        return tuple(name for name in (self.start, self.solver) if name not in ("greedy", None))

    @property
    def _greedy(self) -> str:
        """greedy, multistart, multistart5, multistart-x8, greedy-images16."""
        images = "-x8" if self.augment else f"-images{self.images}" if self.images > 1 else ""
        return (self._from_starts.removeprefix("-") or "greedy") + images

    @property
    def _from_starts(self) -> str:
        """-multistart of all starts, -multistart5 of five, nothing of one."""
        return {1: "", "all": "-multistart"}.get(self.starts, f"-multistart{self.starts}")

    @property
    def _up_to(self) -> str:
        """-l50, nothing without a limit."""
        return f"-l{self.longest}" if self.longest else ""

    @property
    def _prc(self) -> str:
        """prc100-insertion-l50; what it starts from, without iterations: insertion."""
        if not self.iterations:
            return self.start
        name = f"prc{self.iterations}" + ("" if self.start == "greedy" else f"-{self.start}")
        name += self._up_to
        name += "" if self.rule == "cut-off" else f"-{self.rule}"
        return name + (f"-m{self.most_blocks}" if self.most_blocks else "")

    @property
    def number_of_images(self) -> int:
        """That each instance is solved in."""
        return 8 if self.augment else self.images

    def draws(self) -> list["Decoding"]:
        """One decoding for each repeat."""
        return [self.model_copy(update={"draw": self.draw + i, "repeats": 1}) for i in range(self.repeats)]


def revise(*blocks: tuple[int, int], **how: Any) -> Decoding:
    """Revision of blocks from random insertion: (nodes of a block, iterations), ...; `how`: what else `Revision` says.

    Without blocks as published, for drawn instances.
    """
    return Decoding(method="revise", start="insertion", revision=Revision(blocks=blocks, **how) if blocks else "usual")


REVISED_LIBRARY = revise().model_copy(update={"revision": "library"})  # as published for TSPLIB


def beam_search(width: int) -> Decoding:
    """Beam search; greedy, where the beam is 1 wide."""
    return Decoding(method="beam", beam=width) if width > 1 else Decoding()


# -- from the name of a decoding back to it --------------------------------------------------------------------------

_FIRST = r"(?:greedy|multistart(?P<starts>[1-9]\d*)?)(?P<augment>-x8)?"
_SEARCH = r"(?P<method>beam|rrc)(?P<number>[1-9]\d*)(?:-multistart(?P<starts>[1-9]\d*)?)?"
_PRC = rf"prc(?P<number>[1-9]\d*)(?:-(?P<start>{'|'.join(get_args(Start))}))?"
EXAMPLES = "greedy, multistart, multistart5, multistart-x8, beam16, rrc100, prc100 or prc100-insertion"


def parse_decoding(name: str) -> Decoding:
    """Return the decoding of a name, the inverse of `Decoding.name` for those that users ask for.

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


def choose_decoding(
    beam: int,
    rrc: int,
    rescale: float = 1.0,
    prc: int = 0,
    start: str | None = None,
    longest: int | None = None,
    starts: str | None = None,
    augment: bool = False,
    images: int = 1,
    revise: str | None = None,
    name: str | None = None,
) -> Decoding | str | None:
    """Return the decoding that options of the command line ask for; None: they ask for none.

    Images alone say nothing of starts, of which a network has what is usual for it: they are a name, `-x8`, say.

    `name`: that of `--decoding`, which goes without the others.  Raises NeurouteError if they do not go together.
    That `longest` and `starts` are not above the stops of an instance is checked where the instances are known, and
    that a network has many starts where the network is.
    """
    others = (beam, rrc, prc, rescale, start, longest, starts, augment, images, revise)
    if others == (1, 0, 0, 1.0, None, None, None, False, 1, None):
        return None if name is None else parse_decoding(name)
    if name is not None:
        raise NeurouteError(f"--decoding {name}: says all; leave the other ways to build solutions out")
    if not (rescale > 0 and math.isfinite(rescale)):
        raise NeurouteError(
            f"--rescale {rescale:g}: coordinates are stretched by a number above 0; 1 leaves them as they are"
        )
    if (beam > 1) + (rrc > 0) + (prc > 0) > 1:
        raise NeurouteError(
            "--beam, --rrc and --prc exclude each other: --rrc starts from the greedy solution, --prc from --start"
        )
    if revise is not None:
        if others[:-1] != (1, 0, 0, 1.0, None, None, None, False, 1):
            raise NeurouteError("--revise starts from random insertion; leave the other ways to build solutions out")
        return Decoding(method="revise", start="insertion", revision=_parse_revision(revise))
    if not prc and (start, longest) != (None, None):
        raise NeurouteError("--start and --longest are for --prc; say how many iterations, as in --prc 100")
    if others == (1, 0, 0, 1.0, None, None, None, augment, images, None) and augment != (images > 1):
        return "-x8" if augment else f"-images{images}"
    if starts not in (None, "all") and not (starts.isascii() and starts.isdigit() and int(starts)):
        raise NeurouteError(f"--starts {starts}: a number from 1 on, or all, is expected")
    how: dict[str, Any] = {"method": "prc" if prc else "rrc" if rrc else "beam" if beam > 1 else "greedy"}
    how |= {
        "iterations": prc or rrc,
        "beam": beam,
        "start": start or "greedy",
        "longest": longest,
        "starts": 1 if starts is None else starts,
    }
    how |= {"rescale": rescale, "augment": augment, "images": images}
    return validate(Decoding, how, "ways to build solutions", see="`neuroute solve --help`")


def _parse_revision(text: str) -> Revision:
    """100x20,50x25,w10,noflips: blocks of 100 and then of 50 nodes, from ten insertions."""
    parts = text.split(",")
    blocks = [(int(m[1]), int(m[2])) for part in parts if (m := re.fullmatch(r"(\d+)x(\d+)", part, re.ASCII))]
    widths = [int(part[1:]) for part in parts if re.fullmatch(r"w\d+", part, re.ASCII)]
    flat = parts.count("noflips")
    well_formed = len(blocks) + len(widths) + flat == len(parts) and len(widths) <= 1
    if (
        not well_formed
        or not blocks
        or min(widths, default=1) < 1
        or any(nodes < 4 or often < 1 for nodes, often in blocks)
    ):
        raise NeurouteError(
            f"--revise {text}: give NODESxITERATIONS (4 nodes or more), as in 100x20,50x25; add ,w10 for the best of "
            "ten insertions, ,noflips to leave flips out"
        )
    return Revision(blocks=tuple(blocks), width=max(widths, default=1), flips="none" if flat else "blocks")


def check_decoding(problem: str, stops: int, decoding: Decoding, where: str) -> None:
    """Raises NeurouteError if instances with so many stops (with vehicles: customers) cannot be decoded so."""
    if problem != "tsp" and decoding.rescale != 1:
        raise NeurouteError(
            f"--rescale: stretches the coordinates of the TSP only; leave it out for the {problem.upper()}"
        )
    if decoding.starts != "all" and decoding.starts > stops:
        raise NeurouteError(
            f"{where}: --starts {decoding.starts} is more than its {stops} stops; give from 1 to {stops}, or all"
        )
    if decoding.longest is not None and decoding.longest > stops:
        raise NeurouteError(
            f"{where}: --longest {decoding.longest} is more than its {stops} stops; give {SHORTEST} to {stops}, or "
            "leave it out"
        )
