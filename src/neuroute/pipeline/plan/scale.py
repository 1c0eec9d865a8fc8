"""A scale: what the roles of the papers stand for."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, SerializeAsAny, field_validator

from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.yaml_files import how_to_get_there, read_yaml, validate
from neuroute.datasets.benchmarks import instance_names
from neuroute.pipeline.plan.paper import load_paper, paper_folders, with_lenders
from neuroute.pipeline.plan.shapes import Positive
from neuroute.specs.data import Dataset, Labels, Spec
from neuroute.specs.evaluations import Benchmark, BenchmarkEvaluation

Block = TypeVar("Block", bound=Spec)


class ScaleFile(Spec):
    """What a scale file says besides the blocks of its papers."""

    name: Annotated[str, Field(pattern=r"^\w[\w.-]*$", description="of a folder of its own in `work_dir`")]
    summary: Annotated[str, Field(description="what this scale is good for, shown beside every result")]
    label_solver: Annotated[str, Field(description="solver of the training labels")] = "concorde"
    reference_solver: Annotated[str, Field(description="solver of the test sets' reference solutions")] = "concorde"
    seeds: Annotated[
        dict[str, Positive],
        Field(description="run, or a pattern of runs -> trainings that differ by their seed; others have one"),
    ] = {}
    for_gpu: Annotated[bool, Field(description="made for a GPU: plans say GPU-hours first, and where none is, too")] = (
        False
    )
    printed_times: Annotated[
        dict[str, str],
        Field(description="run, or a pattern of runs -> what their paper says that one training takes; plans show it"),
    ] = {}
    substitute_solvers: Annotated[
        bool, Field(description="take the next best solver for a missing one; false: only what config.yaml names")
    ] = True
    train_threads: Positive = 1
    evaluate_threads: Positive = 1
    evaluate_together: Annotated[
        bool, Field(description="one job measures all test sets of a model: starting it costs more than they do")
    ] = False
    verdicts: Annotated[
        bool, Field(description="the report judges the papers' claims; not where networks are too small for a trend")
    ] = True
    warm_jobs: Annotated[
        bool,
        Field(description="jobs are copies of one process that has loaded all: starting them costs more than they do"),
    ] = False
    apart: Annotated[
        dict[str, tuple[str, ...]],
        Field(
            description="paper that is no part of `all`, but made where `papers` of config.yaml names it -> keys of "
            "its block that count all the same, as other papers borrow from them"
        ),
    ] = {}
    only: Annotated[
        dict[str, tuple[str, ...]], Field(description="paper -> tables and figures of it that are made; else all")
    ] = {}
    instances: Annotated[
        dict[Benchmark, tuple[str, ...]],
        Field(description="of a public benchmark these alone are measured, in each paper's range of nodes; else all"),
    ] = {}

    @field_validator("instances")
    @classmethod
    def _are_published(cls, instances: dict[Benchmark, tuple[str, ...]]) -> dict[Benchmark, tuple[str, ...]]:
        for benchmark, names in instances.items():
            every = instance_names(benchmark)
            for name in set(names).difference(every):
                raise ValueError(f"{benchmark}: no instance '{name}'{did_you_mean(near(name, every, most=1))}")
        return instances

    def instances_of(self, benchmark: Benchmark) -> tuple[str, ...]:
        """Return the names of the instances that are measured of a benchmark; none: all."""
        return self.instances.get(benchmark, ())

    def on_benchmark(self, run: str, benchmark: Benchmark, nodes: tuple[int, int], **more: Any) -> BenchmarkEvaluation:
        """Measure a run on the instances of a benchmark that have from so many, and fewer than so many, nodes."""
        names = {"name": benchmark, "benchmark": benchmark, "names": self.instances_of(benchmark)}
        return BenchmarkEvaluation(run=run, min_nodes=nodes[0], max_nodes=nodes[1], **names | more)


PUBLISHED = "published"  # the solver of solutions that come with a test set
SUFFIXES = (".txt", ".npz", ".pkl")
KINDS = ("explosion", "implosion", "cluster")


@dataclass(frozen=True)
class TestFile:
    """A file of published instances."""

    source: Path
    folder: Path  # where its instances are kept for all jobs
    stem: str | None = None  # of the drawn set that it is named for; None: it is recognised by its own name

    def stands_for(self, dataset: Dataset) -> bool:
        """Whether it is to be taken for this drawn test set: tsp100 in its name, or ovrp50_uniform of the 16 VRPs."""
        if dataset.split != "test" or self.stem is not None:
            return self.stem == dataset.stem
        name = self.source.stem.lower()
        if dataset.capacity or [kind for kind in KINDS if kind in name] != [dataset.distribution] * (
            dataset.distribution in KINDS
        ):
            return False
        if dataset.variant:
            return name == f"{dataset.variant.lower()}{dataset.n}_uniform"
        what = {"tsp": "tsp", "cvrp": "c?vrp"}[dataset.problem]
        return bool(re.search(rf"(?<![a-z0-9]){what}_?{dataset.n}(?![0-9])", name)) and not name.endswith("_uniform")


def find_test_files(
    choice: "str | Mapping[str, str]", folder: str | None, store: Path, where: str = "config.yaml"
) -> tuple[TestFile, ...]:
    """The files of `testsets_dir` that the config's `test_sets` asks for: all (`published`), or {drawn stem: file}.

    Raises NeurouteError without a folder, or if a file that is named is missing.
    """
    if choice == "drawn":
        return ()
    if folder is None or not Path(folder).is_dir():
        raise NeurouteError(f"{where}: test_sets: no folder{f' {folder}' if folder else ''}; name it in testsets_dir")
    if isinstance(choice, str):
        files = sorted(file for file in Path(folder).rglob("*") if file.suffix in SUFFIXES)
        return tuple(TestFile(file, store) for file in files)
    for stem, name in choice.items():
        if not (Path(folder) / name).is_file():
            raise NeurouteError(f"{where}: test_sets.{stem}: no file {Path(folder) / name}")
    return tuple(TestFile(Path(folder) / name, store, stem) for stem, name in choice.items())


class Scale(ScaleFile):
    """A scale binds the papers' roles to sizes."""

    blocks: dict[str, SerializeAsAny[Spec]]  # of the papers that are asked for, by key
    test_files: tuple["TestFile", ...] = ()  # published test sets in the place of drawn ones

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

    def reference(self, dataset: Dataset, solver: str) -> Labels:
        """A test set with the references of its gaps: a published one where there is one, else solved by the solver."""
        files = [test for test in self.test_files if test.stands_for(dataset)]
        if not files:
            return Labels(dataset=dataset, solver=solver)
        if len(files) > 1:
            names = " and ".join(test.source.name for test in files)
            raise NeurouteError(
                f"testsets_dir: {names} could both be {dataset.stem}; name one in config.yaml: test_sets: "
                f"{{{dataset.stem}: {files[0].source.name}}}"
            )
        return Labels(
            dataset=dataset.model_copy(
                update={"file": str(files[0].folder / f"{dataset.stem}_{files[0].source.stem}.npz")}
            ),
            solver=PUBLISHED,
        )

    def source_of(self, dataset: Dataset) -> Path:
        """The published file that a test set of the plan is from."""
        as_drawn = dataset.model_copy(update={"file": None})
        return next(test.source for test in self.test_files if test.stands_for(as_drawn))

    def validation(self, test_set: "Callable[[Scale], Labels]", count: int) -> Labels:
        """As many instances of the validation stream, like a test set, solved by the solver of its references.

        A published test set has none of these: the one that is drawn in its place counts.
        """
        labels = test_set(self.model_copy(update={"test_files": ()}))
        return labels.model_copy(update={"dataset": labels.dataset.model_copy(update={"split": "val", "count": count})})

    def with_solvers(self, substitutes: Mapping[str, str]) -> "Scale":
        """This scale with other solvers: `substitutes` says which solver does the work of which."""
        if not substitutes:
            return self
        common = {name: substitutes.get(value, value) for name, value in self if name.endswith("_solver")}
        blocks = {key: _replace(block, substitutes) for key, block in self.blocks.items()}
        return self.model_copy(update={**common, "blocks": blocks})

    def of(self, paper: str) -> str:
        """What one paper's artifacts depend on, as text: an edit of another paper's sizes changes nothing of it."""
        common = [self.name, self.summary, self.reference_solver, json.dumps(self.instances, sort_keys=True)]
        return "\n".join([*common, self.blocks[paper].canonical()])


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


def scales_dir() -> Path:
    """`workflow/scales` of the checkout that this package is installed from, or of the current folder."""
    for root in (Path.cwd(), Path(__file__).resolve().parents[4]):
        if (root / "workflow" / "scales").is_dir():
            return root / "workflow" / "scales"
    raise NeurouteError(f"workflow/scales: no such folder; {how_to_get_there()}")


def scale_names() -> list[str]:
    """The scales in workflow/scales."""
    return sorted(path.stem for path in scales_dir().glob("*.yaml"))


def load_scale(
    name: str,
    papers: Iterable[str] | None = None,
    changes: Mapping[str, Any] | None = None,
    config: str = "config.yaml",
) -> Scale:
    """A scale by name (a file in workflow/scales) or by path (ends in .yaml), with the blocks of these papers.

    Papers that they borrow from come with them; None: all papers that the file has.  `changes` are the config's
    `scale_changes`, `config` is that file.  Raises NeurouteError for a missing file or block, and for a wrong key.
    """
    path = Path(name) if name.endswith(".yaml") else scales_dir() / f"{name}.yaml"
    if not path.is_file():
        raise NeurouteError(f"scale '{name}': no file {path}; known scales: {', '.join(scale_names())}")
    values, where = read_yaml(path), str(path)
    if changes:
        values, where = changed(values, changes), f"{path} with scale_changes of {config}"
    raw = {key: value for key, value in values.items() if key in paper_folders()}
    common = validate(ScaleFile, {key: value for key, value in values.items() if key not in raw}, where)
    of_config = [name for name in common.seeds if name in ((changes or {}).get("seeds") or {})]
    seeds = {name: common.seeds[name] for name in of_config} | common.seeds  # the first pattern that fits a run counts
    common = common.model_copy(update={"seeds": seeds})
    for field in ("apart", "only"):
        if unknown := sorted(getattr(common, field).keys() - paper_folders().keys()):
            meant = did_you_mean(near(unknown[0], paper_folders())) or "; correct it"
            raise NeurouteError(f"{where}: {field}: no paper '{unknown[0]}'{meant}")
    blocks: dict[str, Spec] = {}
    papers = None if papers is None else list(papers)
    keys = [key for key in raw if key not in common.apart] if papers is None else papers
    for key in with_lenders(keys):
        if key not in raw and not load_paper(key).optional:
            users = [f"which {user} borrows from" for user in keys if key in with_lenders([user]) and key != user]
            user = (users or [f"which {config} asks for"])[0]
            raise NeurouteError(f"{where}: no block '{key}', {user}; add it, or leave that paper out of `papers`")
        block = raw.get(key, {})
        if key in common.apart and key not in (papers or ()):
            if unknown := sorted(set(common.apart[key]) - set(block)):
                raise NeurouteError(f"{where}: apart.{key}: block '{key}' has no {unknown[0]}; correct it")
            block = {name: part for name, part in block.items() if name in common.apart[key]}
        blocks[key] = validate(load_paper(key).scale, block, where, key)
    return Scale.model_construct(**common.__dict__, blocks=blocks)


def changed(values: Mapping[Any, Any], changes: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return values of YAML with others put in, key by key; numbers may be text, as in a config that was JSON."""
    merged, keys = dict(values), {str(key): key for key in values}
    for name, change in changes.items():
        key = keys.get(str(name), name)
        old = merged.get(key)
        merged[key] = changed(old, change) if isinstance(old, Mapping) and isinstance(change, Mapping) else change
    return merged
