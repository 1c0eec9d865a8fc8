"""A scale: what the roles of the papers stand for."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, SerializeAsAny

from neuroute.core.errors import NeurouteError
from neuroute.plan.papers import load_paper, paper_folders, with_lenders
from neuroute.plan.shapes import Positive
from neuroute.plan.specs import Spec
from neuroute.plan.yaml_files import read_yaml, validate

Block = TypeVar("Block", bound=Spec)


class ScaleFile(Spec):
    """What a scale file says besides the blocks of its papers."""

    name: str
    summary: Annotated[str, Field(description="what this scale is good for, shown beside every result")]
    label_solver: Annotated[str, Field(description="solver of the training labels")] = "concorde"
    reference_solver: Annotated[str, Field(description="solver of the test sets' reference solutions")] = "concorde"
    substitute_solvers: Annotated[
        bool, Field(description="take the next best solver for a missing one; false: only what config.yaml names")
    ] = True
    train_threads: Positive = 1
    evaluate_threads: Positive = 1
    evaluate_together: Annotated[
        bool, Field(description="one job measures all test sets of a model: starting it costs more than they do")
    ] = False
    warm_jobs: Annotated[
        bool,
        Field(description="jobs are copies of one process that has loaded all: starting them costs more than they do"),
    ] = False


class Scale(ScaleFile):
    """A scale binds the papers' roles to sizes."""

    blocks: dict[str, SerializeAsAny[Spec]]  # of the papers that are asked for, by key

    def __getitem__(self, kind: type[Block]) -> Block:
        """The block of the paper whose class it is."""
        for block in self.blocks.values():
            if isinstance(block, kind):
                return block
        raise LookupError(f"scale {self.name} has no {kind.__name__}")

    def with_block(self, block: Spec) -> "Scale":
        """This scale with another block of the same class."""
        blocks = {key: block if type(old) is type(block) else old for key, old in self.blocks.items()}
        return self.model_copy(update={"blocks": blocks})

    def with_solvers(self, substitutes: Mapping[str, str]) -> "Scale":
        """This scale with other solvers: `substitutes` says which solver does the work of which."""
        if not substitutes:
            return self
        common = {name: substitutes.get(value, value) for name, value in self if name.endswith("_solver")}
        blocks = {key: _replace(block, substitutes) for key, block in self.blocks.items()}
        return self.model_copy(update={**common, "blocks": blocks})

    def of(self, paper: str) -> "ScalePart":
        """What one paper's artifacts depend on: an edit of another paper's sizes changes nothing of it."""
        return ScalePart(name=self.name, summary=self.summary, solver=self.reference_solver, sizes=self.blocks[paper])


def _replace(value: Any, substitutes: Mapping[str, str]) -> Any:
    """A value of a scale with other solvers: every text that is a solver's name is one."""
    if isinstance(value, str):
        return substitutes.get(value, value)
    if isinstance(value, Spec):
        return value.model_copy(update={name: _replace(part, substitutes) for name, part in value})
    if isinstance(value, dict):
        return {key: _replace(part, substitutes) for key, part in value.items()}
    if isinstance(value, list | tuple):
        parts = [_replace(part, substitutes) for part in value]
        return type(value)(part for i, part in enumerate(parts) if part not in parts[:i] or part == value[i])
    return value


class ScalePart(Spec):
    """A scale as one paper sees it."""

    name: str
    summary: str
    solver: str
    sizes: SerializeAsAny[Spec]


def scales_dir() -> Path:
    """`workflow/scales` of the checkout that this package is installed from, or of the current folder."""
    for root in (Path.cwd(), Path(__file__).resolve().parents[3]):
        if (root / "workflow" / "scales").is_dir():
            return root / "workflow" / "scales"
    raise NeurouteError("workflow/scales not found; run from the folder of the Snakefile (a new one: `neuroute init`)")


def load_scale(name: str, papers: Iterable[str] | None = None) -> Scale:
    """A scale by name (a file in workflow/scales) or by path (ends in .yaml), with the blocks of these papers.

    Papers that they borrow from come with them; None: all papers that the file has.
    Raises NeurouteError for a missing file or block, and for a wrong key.
    """
    path = Path(name) if name.endswith(".yaml") else scales_dir() / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in scales_dir().glob("*.yaml")))
        raise NeurouteError(f"scale '{name}': no file {path}; known scales: {known}")
    return parse_scale(read_yaml(path), papers, str(path))


def parse_scale(values: dict[str, Any], papers: Iterable[str] | None = None, where: str = "scale") -> Scale:
    """`load_scale` of what is read already."""
    raw = {key: value for key, value in values.items() if key in paper_folders()}
    common = validate(ScaleFile, {key: value for key, value in values.items() if key not in raw}, where)
    blocks: dict[str, Spec] = {}
    wanted = list(raw if papers is None else papers)
    for key in with_lenders(wanted):
        if key not in raw:
            users = [f"which {user} borrows from" for user in wanted if key in with_lenders([user]) and key != user]
            raise NeurouteError(f"{where}: no block '{key}', {(users or ['which config.yaml asks for'])[0]}")
        blocks[key] = validate(load_paper(key).scale, raw[key], where, key)
    return Scale.model_construct(**common.__dict__, blocks=blocks)
