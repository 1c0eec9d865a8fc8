"""`config.yaml` as a typed model: read, merged and checked before any job starts."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, create_model, field_validator, model_validator

from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.job import CONFIG_ENV, FOLDERS, ROOT_ENV
from neuroute.core.yaml_files import parse_yaml, read_yaml, set_key, validate
from neuroute.pipeline.plan.papers import add_folders, all_papers, load_paper, paper_folders
from neuroute.pipeline.plan.scale import Scale, ScaleFile, load_scale
from neuroute.pipeline.plan.shapes import Sweep, TrainingChange
from neuroute.specs.data import Spec as Strict
from neuroute.specs.objects import LAST_SEED

__all__ = ["CONFIG_ENV", "Config", "Scale", "load_config", "load_scale", "parse_config", "schemas"]

# Sets to compare on that are downloaded: of which benchmark, and of it which set.
LIBRARIES = {  # set of `compare` -> benchmark, and part of it
    "tsplib": ("tsplib", ""), "x": ("cvrplib", "X"), "ags": ("cvrplib", "Arnold"), "national": ("national", ""),
    "vlsi": ("vlsi", ""), "dimacs": ("dimacs", ""),
}  # fmt: skip
PLANNED_ENV = "NEUROUTE_PLANNED"  # the Snakefile names a file with what it goes by: spec and code of each job


class RunChange(Strict):
    """Changes to one run: `runs: {scaling/base_6x128: {seed: 1, training: {learning_rate: 2.0e-4}}}`."""

    seed: Annotated[int, Field(ge=0, le=LAST_SEED)] | None = None
    seeds: Annotated[
        int | None,
        Field(
            ge=1,
            le=1000,
            description="trainings that differ by their seed, <run>, <run>-s1, ...; tables and figures show their mean "
            "and range; null: as many as the scale says",
        ),
    ] = None
    network: Annotated[
        str | None, Field(pattern=r"^[\w.]+:\w+$", description="module:Class, here or in a module beside the Snakefile")
    ] = None
    arguments: Annotated[
        dict[str, Any], Field(description="of the network: all of another one, changes of the declared one")
    ] = {}
    training: TrainingChange = TrainingChange()
    weights: Annotated[
        str | None,
        Field(description="a file to take instead of training: published weights, or a checkpoint of neuroute"),
    ] = None

    @model_validator(mode="after")
    def _weights_are_not_trained(self) -> "RunChange":
        changed = [name for name in ("seed", "seeds", "training") if name in self.model_fields_set]
        if self.weights is not None and changed:
            raise ValueError(f"with weights nothing is trained: leave out {' and '.join(changed)}")
        return self


class Machine(Strict):
    """Where jobs run: what `neuroute plan` reckons with, and what a cluster is asked for."""

    job_hours: Annotated[float, Field(gt=0, description="longest time that one job may have on your cluster")] = 48.0
    cpu_gflops_per_thread: Annotated[float | None, Field(gt=0, description="sustained; null: typical")] = None
    gpu_tflops: Annotated[float | None, Field(gt=0, description="of a GPU, likewise")] = None


Folder = Annotated[str, AfterValidator(os.path.expanduser)]  # `~` in a file is no shell's
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def split_method(text: str) -> tuple[str, str, str]:
    """Return the name, source and problem of `name=source@problem`; what is not said is empty.

    In `module:Net=FILE`, in a path and of a file with an equals sign there is no name.  Raises NeurouteError if the
    name or what it names is empty.
    """
    whole, _, problem = text.partition("@")
    name, equals, source = whole.partition("=")
    if not equals or ":" in name or "/" in name or Path(whole).is_file():
        return "", whole, problem
    if not (name.strip() and source):
        raise NeurouteError(f"method '{text}': a name goes before the equals sign, and a method behind it")
    return name.strip(), source, problem


class Compare(Strict):
    """What `snakemake compare` and `neuroute compare` compare, and on what."""

    sets: Annotated[
        list[str], Field(min_length=1, description="tsplib, x, ags, national, vlsi, dimacs, or files of your own")
    ] = ["tsplib", "x"]
    ignore_sections: Annotated[
        list[str], Field(description="keys and sections of files of your own that are left out, as PICKUP_SECTION")
    ] = []
    methods: Annotated[
        list[str],
        Field(
            min_length=1,
            description="solvers, shipped networks, checkpoints, runs of the plan, a paper's runs, `trained` (all "
            "finished ones), module:function, module:Net=FILE; each under a name of its own: name=...",
        ),
    ] = [
        "nearest",
        "insertion@tsp",
        "insertion-angle@cvrp",
        "savings",
        "lkh",
        "ortools",
        "pyvrp@cvrp",
        "hgs@cvrp",
        "tsp",
        "cvrp",
        "vrp",
    ]
    results: Annotated[list[str], Field(description="results files of others: method, instance, cost, seconds")] = []
    published: Annotated[
        list[str], Field(description="methods of a survey whose results join in: `all`, or as in [lehd, icam, sil]")
    ] = []
    against: Annotated[
        str | None, Field(description="the method to which paired differences are; null: the best cheap construction")
    ] = None
    seconds: Annotated[
        Seconds | Annotated[list[Seconds], Field(min_length=1)] | None,
        Field(description="that each search has for an instance; of several, each search is a row at each; null: 5"),
    ] = None
    limit: Annotated[
        float,
        Field(gt=0, allow_inf_nan=False, description="wall-clock seconds after which an instance counts as unsolved"),
    ] = 600.0
    min_nodes: Annotated[int, Field(ge=0, description="nodes (TSP) or customers (CVRP) of the smallest instance")] = 0
    max_nodes: Annotated[int, Field(ge=4, description="nodes or customers of the largest instance")] = 200
    groups: Annotated[list[int], Field(description="sizes at which groups begin")] = [100, 200, 500, 1000, 10000]
    seeds: Annotated[int, Field(ge=1, description="of methods that draw")] = 1
    threads: Annotated[int, Field(ge=1, description="of networks on a CPU; solvers have one")] = 1
    clock: Annotated[
        Literal["wall", "cpu"], Field(description="by which searches end; cpu: where a machine does other work, too")
    ] = "wall"

    @property
    def budgets(self) -> list[float]:
        """The seconds of searches, shortest first."""
        if self.seconds is None:
            return [5.0]
        return sorted(set(self.seconds)) if isinstance(self.seconds, list) else [self.seconds]

    @property
    def sources(self) -> list[str]:
        """The methods without their names and problems."""
        return [split_method(method)[1] for method in self.methods]

    @property
    def benchmarks(self) -> list[str]:
        """The benchmarks that are downloaded for it."""
        return sorted({LIBRARIES[name][0] for name in self.sets if name in LIBRARIES})


class Config(Strict):
    """The user's choices: what to run, at which scale, on what."""

    scale: Annotated[str, Field(description="a file in workflow/scales, without .yaml")] = "smoke"
    scale_changes: Annotated[
        dict[str, Any], Field(description="keys of the scale file with other values: {scaling: {depths: {60: 6}}}")
    ] = {}
    papers_path: Annotated[
        list[Folder], Field(description="folders with papers of your own, beside those of this package")
    ] = []
    papers: Annotated[
        list[str] | None, Field(min_length=1, description="whose artifacts to make; null: all papers of the scale")
    ] = None
    device: Annotated[
        Literal["auto", "cpu", "cuda"], Field(description="auto: CUDA where there is a GPU, else CPU")
    ] = "auto"
    gpus_per_run: Annotated[int, Field(ge=1, description="more than one: torchrun with DDP")] = 1
    jobs_per_gpu: Annotated[int, Field(ge=1, description="that share a GPU, each with its part of the memory")] = 1
    tf32: Annotated[
        bool, Field(description="let a GPU multiply fp32 matrices in TF32; records say so beside the device")
    ] = True
    compile: Annotated[bool, Field(description="torch.compile the networks while training")] = False
    memory_gb: Annotated[
        float | None,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="for a job's activations; null: 4 on CPU, 60 % of what a GPU has free",
        ),
    ] = None
    label_workers: Annotated[
        int | None, Field(ge=1, description="solver processes per label job; null: one for each 5 minutes of solving")
    ] = None
    label_caches: Annotated[list[Folder], Field(description="folders with label shards to reuse")] = []
    substitutes: Annotated[
        dict[str, str] | None,
        Field(
            description="solver -> solver that does its work, {concorde: lkh}; null: the next best one where one is "
            "missing, but not at scale paper; {}: none"
        ),
    ] = None
    benchmarks_dir: Annotated[
        Folder | None,
        Field(description="a local copy of TSPLIB (its folder or the one above); null: download the rest"),
    ] = None
    testsets_dir: Annotated[Folder | None, Field(description="folder of test sets, for `test_sets` and by name")] = None
    test_sets: Annotated[
        Literal["drawn", "published"] | dict[str, str],
        Field(
            description="published: those of testsets_dir whose names say which they are take the place of drawn ones; "
            "or {drawn set: file}"
        ),
    ] = "drawn"
    loggers: Annotated[
        list[Literal["csv", "tensorboard", "wandb", "mlflow"]],
        Field(description="where trainings log besides log.jsonl: log.csv, TensorBoard, Weights & Biases, MLflow"),
    ] = []
    work_dir: Folder = "work"
    results_dir: Folder = "results"
    rehearse: Annotated[
        bool, Field(description="a few batches of everything, in folders `rehearsal` of work_dir and results_dir")
    ] = False
    machine: Machine = Machine()
    compare: Compare = Compare()
    runs: Annotated[dict[str, RunChange], Field(description="changes to single runs, by id")] = {}
    sweep: Annotated[Sweep | None, Field(description="a run at every point of a grid, with a table and a figure")] = (
        None
    )
    _where: str = "config.yaml"

    @property
    def where(self) -> str:
        """The file that says all this, for messages."""
        return self._where

    @property
    def networks(self) -> list[str]:
        """Kinds of networks that `runs` names: those outside this package are the user's, and trusted."""
        return [change.network for change in self.runs.values() if change.network]

    @model_validator(mode="after")
    def _keep_folders_apart(self) -> "Config":
        folders = {name: os.path.abspath(getattr(self, name)) for name in FOLDERS}
        for name, folder in folders.items():
            if folder == os.getcwd():
                raise ValueError(f"{name}: is the working folder itself; name a folder in it")
        if len(set(folders.values())) < len(folders):
            raise ValueError(f"{' and '.join(folders)} are one folder; name two")
        return self

    @model_validator(mode="after")
    def _rehearse_elsewhere(self) -> "Config":
        folders = {name: os.path.join(getattr(self, name), "rehearsal") for name in FOLDERS}
        return self.model_copy(update=folders) if self.rehearse else self

    @field_validator("papers_path")
    @classmethod
    def _add_folders(cls, folders: list[str]) -> list[str]:
        if "" in folders:
            raise ValueError("a folder without a name; leave it out")
        try:
            add_folders(folders)
        except NeurouteError as error:
            raise ValueError(str(error)) from None
        return folders

    @field_validator("substitutes")
    @classmethod
    def _are_solvers(cls, substitutes: dict[str, str] | None) -> dict[str, str] | None:
        from neuroute.solvers.registry import SOLVERS

        for name in (part for pair in (substitutes or {}).items() for part in pair):
            if name not in SOLVERS:
                raise ValueError(f"no solver '{name}'; known solvers: {', '.join(SOLVERS)}")
        return substitutes

    @field_validator("papers")
    @classmethod
    def _are_known(cls, papers: list[str] | None) -> list[str] | None:
        if unknown := [key for key in papers or () if key not in paper_folders()]:
            known_papers = sorted(paper_folders())
            meant = did_you_mean(near(unknown[0], known_papers, most=1)) or ";"
            raise ValueError(f"no paper '{unknown[0]}'{meant} known papers: {', '.join(known_papers)}")
        return papers


def parse_config(values: dict[str, Any], where: str = "config.yaml") -> Config:
    config = validate(Config, values, where)
    config._where = where
    return config


def load_config(path: Path | None = None, changes: Sequence[str] = (), **overrides: Any) -> Config:
    """The config of this process: an explicit file, else what the Snakefile handed down, else ./config.yaml.

    changes: keys with other values, as in `runs.scaling/base_6x128.seed=1`.
    """
    if path is None and CONFIG_ENV in os.environ:
        values, where = parse_yaml(os.environ[CONFIG_ENV]), f"${CONFIG_ENV}"
    else:
        path = path or Path("config.yaml")
        values, where = read_yaml(path), str(path)
    values |= {key: value for key, value in overrides.items() if value is not None}
    for change in changes:
        set_key(values, change)
    if path is None and (root := os.environ.get(ROOT_ENV)):  # a job whose files lie there
        values |= {key: os.path.join(root, os.path.expanduser(values.get(key, name))) for key, name in FOLDERS.items()}
    return parse_config(values, f"{where} with --set" if changes else where)


def schemas() -> dict[str, dict[str, Any]]:
    """Name of each schema -> the schema, with the blocks of all known papers: editors read them."""
    blocks: dict[str, Any] = {key: (load_paper(key).scale, None) for key in all_papers()}
    config = Config.model_json_schema()
    config["properties"]["papers"]["items"] = {"type": "string", "examples": all_papers()}
    return {"config": config, "scale": create_model("Scale", __base__=ScaleFile, **blocks).model_json_schema()}
