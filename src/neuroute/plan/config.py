"""`config.yaml` and the scale files as typed models: read, merged and checked before any job starts."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator

from neuroute.errors import NeurouteError
from neuroute.plan.objects import SelfImprovement
from neuroute.plan.objects import Spec as Strict

M = TypeVar("M", bound=BaseModel)
CONFIG_ENV = "NEUROUTE_CONFIG"  # the Snakefile hands its merged config to the jobs it starts


class Shape(Strict):
    """Width and attention heads of a decoder; the FFN is four times as wide."""

    width: Annotated[int, Field(ge=4, description="embedding dimension")]
    heads: Annotated[int, Field(ge=1, description="attention heads; must divide the width")]

    @model_validator(mode="after")
    def _heads_divide(self) -> "Shape":
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not divisible by {self.heads} heads")
        return self


class DeepNarrow(Shape):
    """A shape of about the same parameter count as the smallest grid model (scaling, Table 2)."""

    depth: Annotated[int, Field(ge=1, description="decoder layers")]


class BaselineShape(DeepNarrow):
    """The shape of a network of other authors, whose FFN is not always four times as wide."""

    feed_forward: Annotated[int, Field(ge=1, description="width of the FFN's hidden layer")]


Nodes = Annotated[int, Field(ge=4, description="nodes of an instance")]
Positive = Annotated[int, Field(ge=1)]


class TrainingScale(Strict):
    """How a supervised run is trained at this scale (scaling, Table 9)."""

    samples: Annotated[int, Field(ge=1, description="labelled training instances")]
    epochs: Positive = 1
    batch_size: Positive = 1024
    step: Annotated[
        Literal["sub-path", "decision", "summed"],
        Field(description="reading of the paper's 'step': what one batch updates"),
    ] = "sub-path"
    sub_paths: Annotated[
        Literal["random", "suffix", "pairs"],
        Field(description="random pieces of the tour (LEHD), its end (BQ-NCO), or one per instance (PENS only)"),
    ] = "random"
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 1.25e-4
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    decay_gamma: Annotated[float, Field(gt=0, le=1)] = 0.997
    decay_every: Annotated[int, Field(ge=1, description="batches between two decays")] = 100
    final_learning_rate: Annotated[
        float | None, Field(gt=0, le=1, description="of a cosine over all batches, instead of the exponential decay")
    ] = None
    warmup_batches: Annotated[int, Field(ge=0)] = 0
    warmup_factor: Annotated[float, Field(gt=0, le=1)] = 0.1
    precision: Literal["fp32", "bf16"] = "fp32"
    validations: Annotated[int, Field(ge=1, description="greedy validations during training")] = 20
    keep: Annotated[Literal["last", "best"], Field(description="weights of the checkpoint; best: by validation")] = (
        "last"
    )


class TrainingChange(Strict):
    """What may be changed of one run's training; everything else stays as it is."""

    samples: Positive | None = None
    epochs: Positive | None = None
    batch_size: Positive | None = None
    step: Literal["sub-path", "decision", "summed"] | None = None
    learning_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    weight_decay: Annotated[float, Field(ge=0)] | None = None
    decay_gamma: Annotated[float, Field(gt=0, le=1)] | None = None
    decay_every: Positive | None = None
    final_learning_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    warmup_batches: Annotated[int, Field(ge=0)] | None = None
    warmup_factor: Annotated[float, Field(gt=0, le=1)] | None = None
    precision: Literal["fp32", "bf16"] | None = None
    validations: Positive | None = None
    sub_paths: Literal["random", "suffix", "pairs"] | None = None
    keep: Literal["last", "best"] | None = None
    instances: Annotated[Positive | None, Field(description="self-improvement only, as are the next four")] = None
    beam: Positive | None = None
    rounds: Positive | None = None
    sigma: Annotated[float, Field(ge=0)] | None = None
    passes: Positive | None = None


class CvrpBaseline(BaselineShape):
    """LEHD for the CVRP, which no table of the paper shows: trained on demand."""

    customers: Nodes
    test_count: Positive
    validation_count: Positive
    label_solver: str = "hgs-short"
    reference_solver: str = "hgs"
    training: TrainingScale


class ScalingScale(Strict):
    """What the roles of paper `scaling` stand for at this scale.  Keys are the paper's numbers."""

    sizes: Annotated[dict[int, Nodes], Field(description="the paper's n -> nodes here")]
    test_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> test instances here")]
    shifted_counts: Annotated[
        dict[int, Positive], Field(description="Tables 14-16: the paper's n -> test instances here; default: as above")
    ] = {}
    validation_count: Annotated[int, Field(ge=1, description="validation instances")] = 1000
    depths: Annotated[dict[int, Positive], Field(description="the paper's depth -> layers here")]
    widths: Annotated[dict[int, Shape], Field(description="the paper's width -> shape here")]
    deep_narrow: Annotated[dict[str, DeepNarrow], Field(description="Table 2's shapes: '24x64', '96x32'")]
    beams: Annotated[dict[int, Positive], Field(description="Table 18's beam widths -> beam widths here")]
    beam_count: Annotated[int, Field(ge=1, description="Table 18, Figures 4 and 6: test instances")]
    budgets: Annotated[
        dict[str, dict[Literal["limited", "sufficient"], Positive]],
        Field(description="Table 4: model -> beam width of each budget"),
    ]
    budget_count: Annotated[int, Field(ge=1, description="Table 4: test instances")]
    latency_batches: Annotated[dict[int, Positive], Field(description="Table 17: batch size -> here")]
    rrc: Annotated[dict[int, Positive], Field(description="Table 19: iterations of random re-construct -> here")]
    rrc_counts: Annotated[dict[int, Positive], Field(description="Table 19: the paper's n -> test instances here")]
    tsplib_max_nodes: Annotated[int, Field(ge=51, description="Table 6: instances below this many nodes")] = 5000
    probe_count: Annotated[int, Field(ge=1, description="Figure 12: test instances with optimal tours")] = 1000
    training: TrainingScale
    changes: Annotated[
        dict[str, TrainingChange], Field(description="Tables 3 and 11, Figure 8: what these runs change of `training`")
    ]
    seeds: Annotated[
        dict[str, Positive], Field(description="run -> trainings with different seeds; others have one")
    ] = {}
    lehd: Annotated[dict[str, BaselineShape], Field(description="Table 20's shapes of LEHD: '6x128', '24x64'")]
    lehd_training: TrainingScale
    lehd_cvrp: CvrpBaseline
    bq: BaselineShape
    bq_training: TrainingScale
    sigd: BaselineShape
    sigd_training: SelfImprovement

    @model_validator(mode="after")
    def _roles_complete(self) -> "ScalingScale":
        wanted: list[tuple[str, Any, set[Any]]] = [
            ("sizes", self.sizes, {100, 200, 500, 1000}),
            ("test_counts", self.test_counts, {100, 200, 500, 1000}),
            ("depths", self.depths, {6, 12, 24, 42}),
            ("widths", self.widths, {128, 256, 512}),
            ("deep_narrow", self.deep_narrow, {"24x64", "96x32"}),
            ("beams", self.beams, {1, 2, 4, 8, 16, 32, 64}),
            ("budgets", self.budgets, {"6x128", "6x512", "24x128", "42x128"}),
            ("latency_batches", self.latency_batches, {50, 100, 1000}),
            ("rrc", self.rrc, {100, 200, 500, 800, 1000}),
            ("rrc_counts", self.rrc_counts, {100, 1000}),
            ("changes", self.changes, {"small01M", "norezero", "data1M", "data10M"}),
            ("lehd", self.lehd, {"6x128", "24x64"}),
        ]
        for name, given, roles in wanted:
            if set(given) != roles:
                raise ValueError(f"{name} must name exactly the paper's {sorted(roles)}, got {sorted(given)}")
        for name, count, limit in (
            ("beam_count", self.beam_count, self.test_counts[100]),
            ("budget_count", self.budget_count, self.test_counts[100]),
            ("probe_count", self.probe_count, self.test_counts[100]),
            ("rrc_counts.100", self.rrc_counts[100], self.test_counts[100]),
            ("rrc_counts.1000", self.rrc_counts[1000], self.test_counts[1000]),
        ):
            if count > limit:
                raise ValueError(f"{name} is {count}, but test_counts has only {limit} instances")
        return self


class PensShape(BaselineShape):
    """A shape whose heads axial RoPE can split: pairs of channels for x and for y (pens, Section 4.1)."""

    @model_validator(mode="after")
    def _heads_split(self) -> "PensShape":
        if self.width // self.heads % 4:
            raise ValueError(
                f"RoPE cannot split heads of {self.width // self.heads} channels: width / heads must be a multiple of 4"
            )
        return self


Factor = Annotated[float, Field(gt=0, allow_inf_nan=False, description="of the coordinates")]


class PensScale(Strict):
    """What the roles of paper `pens` stand for at this scale.  Keys are the paper's numbers.

    BQ and LEHD are those of `scaling`, so its TSP100 must be this paper's.
    """

    sizes: Annotated[dict[int, Nodes], Field(description="the paper's n -> nodes here")]
    test_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> test instances here")]
    timed_counts: Annotated[
        dict[int, Positive], Field(description="the paper's n -> instances that are timed, one at a time")
    ]
    repeats: Annotated[int, Field(ge=1, description="solutions of each instance, with different embeddings")] = 5
    validation_count: Positive = 1000
    largest_solver: Annotated[str, Field(description="solver of the largest test set's reference solutions")]
    network: PensShape
    training: TrainingScale
    small_network: Annotated[PensShape, Field(description="Figure 5: the models that are trained on TSP20")]
    small_training: TrainingScale
    sweep_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> held-out instances of a sweep")]
    factors: Annotated[
        dict[int, list[Factor]], Field(description="the paper's n -> scaling factors of its sweep, at least three")
    ]
    attention_factors: Annotated[list[Factor], Field(min_length=1, description="Figure 6: before the best one")]
    tsplib_max_nodes: Annotated[int, Field(ge=51, description="TSPLIB: instances below this many nodes")] = 10_001

    @model_validator(mode="after")
    def _roles_complete(self) -> "PensScale":
        uniform = {100, 250, 500, 1000, 10_000}
        wanted: list[tuple[str, Any, set[int]]] = [
            ("sizes", self.sizes, uniform | {20, 50}),
            ("test_counts", self.test_counts, uniform | {20, 50}),
            ("timed_counts", self.timed_counts, uniform),
            ("sweep_counts", self.sweep_counts, uniform),
            ("factors", self.factors, uniform),
        ]
        for name, given, roles in wanted:
            if set(given) != roles:
                raise ValueError(f"{name} must name exactly the paper's {sorted(roles)}, got {sorted(given)}")
        for size, count in self.timed_counts.items():
            if count > self.test_counts[size]:
                raise ValueError(f"timed_counts.{size} is {count}, but test_counts has only {self.test_counts[size]}")
        for name, training in (("training", self.training), ("small_training", self.small_training)):
            if (training.sub_paths, training.step) != ("pairs", "decision"):
                raise ValueError(f"{name}: PENS is trained on path-TSPs: `sub_paths: pairs` and `step: decision`")
        if len({self.sizes[role] for role in uniform}) < len(uniform):
            raise ValueError(f"sizes {self.sizes}: those of the paper's {sorted(uniform)} must all differ")
        for size, factors in self.factors.items():
            if len(set(factors)) < 3 or max(factors) < 1.2 * min(factors):
                raise ValueError(
                    f"factors.{size} {factors}: too narrow to have a minimum; give at least three, the largest at "
                    "least 1.2 times the smallest"
                )
        return self


class Scale(Strict):
    """A scale binds the papers' roles to sizes."""

    name: str
    summary: Annotated[str, Field(description="what this scale is good for, shown beside every result")]
    label_solver: Annotated[str, Field(description="solver of the training labels")] = "concorde"
    reference_solver: Annotated[str, Field(description="solver of the test sets' reference solutions")] = "concorde"
    train_threads: Positive = 1
    evaluate_threads: Positive = 1
    evaluate_together: Annotated[
        bool, Field(description="one job measures all test sets of a model: starting it costs more than they do")
    ] = False
    scaling: ScalingScale
    pens: PensScale

    def of(self, paper: str) -> "ScalePart":
        """What one paper's artifacts depend on: an edit of another paper's sizes changes nothing of it."""
        return ScalePart(name=self.name, summary=self.summary, solver=self.reference_solver, sizes=getattr(self, paper))

    @model_validator(mode="after")
    def _equal_terms(self) -> "Scale":
        if self.pens.sizes[100] != self.scaling.sizes[100]:
            raise ValueError(
                f"pens.sizes.100 is {self.pens.sizes[100]}, but BQ and LEHD are trained at scaling.sizes.100, "
                f"{self.scaling.sizes[100]} nodes: make them equal"
            )
        return self


class ScalePart(Strict):
    """A scale as one paper sees it."""

    name: str
    summary: str
    solver: str
    sizes: ScalingScale | PensScale


class RunChange(Strict):
    """Changes to one run: `runs: {scaling/base_6x128: {seed: 1, training: {learning_rate: 2.0e-4}}}`."""

    seed: Annotated[int, Field(ge=0, lt=2**20)] | None = None
    training: TrainingChange = TrainingChange()


class Machine(Strict):
    """Sustained rates that `neuroute plan` turns FLOPs into hours with; measure yours with `make bench`."""

    cpu_gflops_per_thread: Annotated[float, Field(gt=0)] = 50.0
    gpu_tflops: Annotated[float, Field(gt=0)] = 60.0


class Config(Strict):
    """The user's choices: what to run, at which scale, on what."""

    scale: Annotated[str, Field(description="a file in workflow/scales, without .yaml")] = "smoke"
    papers: Annotated[list[Literal["scaling", "pens"]], Field(min_length=1)] = ["scaling", "pens"]
    device: Annotated[
        Literal["auto", "cpu", "cuda"], Field(description="auto: CUDA where there is a GPU, else CPU")
    ] = "auto"
    gpus_per_run: Annotated[int, Field(ge=1, description="more than one: torchrun with DDP")] = 1
    compile: Annotated[bool, Field(description="torch.compile the networks while training")] = False
    memory_gb: Annotated[
        float | None,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="for a job's activations; null: 4 on CPU, 60 % of what a GPU has free",
        ),
    ] = None
    label_workers: Annotated[int | None, Field(ge=1, description="solver processes per label job; null: all cores")] = (
        None
    )
    label_caches: Annotated[list[str], Field(description="folders with label shards to reuse")] = []
    benchmarks_dir: Annotated[
        str | None, Field(description="a local copy of TSPLIB (its folder or the one above); null: download it")
    ] = None
    testsets_dir: Annotated[str | None, Field(description="folder of test sets (.npz) to evaluate by name")] = None
    tensorboard: Annotated[bool, Field(description="also write TensorBoard event files")] = False
    work_dir: str = "work"
    results_dir: str = "results"
    machine: Machine = Machine()
    runs: Annotated[dict[str, RunChange], Field(description="changes to single runs, by id")] = {}


def _first_error(error: ValidationError, where: str) -> NeurouteError:
    detail = error.errors()[0]
    path = ".".join(str(p) for p in detail["loc"] if p != "[key]")
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        message = "unknown key"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return NeurouteError(f"{where}: {path or 'top level'}: {message}{more}; see workflow/schemas for what is allowed")


def validated(kind: type[M], values: dict[str, Any], where: str) -> M:
    """`values` as a model.  Raises NeurouteError that names `where` and the first wrong key."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise _first_error(error, where) from None


def parse_config(values: dict[str, Any], where: str = "config.yaml") -> Config:
    return validated(Config, values, where)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        raise NeurouteError(f"{path}: no such file; run from the folder that holds the Snakefile") from None
    except OSError as error:
        raise NeurouteError(f"{path}: cannot be read ({error.strerror})") from None
    except yaml.YAMLError as error:
        raise NeurouteError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise NeurouteError(f"{path}: expected a mapping of keys to values")
    return values


def load_config(path: Path | None = None, **overrides: Any) -> Config:
    """The config of this process: an explicit file, else what the Snakefile handed down, else ./config.yaml."""
    if path is None and CONFIG_ENV in os.environ:
        values, where = yaml.safe_load(os.environ[CONFIG_ENV]), f"${CONFIG_ENV}"
    else:
        path = path or Path("config.yaml")
        values, where = _read_yaml(path), str(path)
    values |= {key: value for key, value in overrides.items() if value is not None}
    return parse_config(values, where)


def scales_dir() -> Path:
    """`workflow/scales` of the checkout that this package is installed from, or of the current folder."""
    for root in (Path.cwd(), Path(__file__).resolve().parents[3]):
        if (root / "workflow" / "scales").is_dir():
            return root / "workflow" / "scales"
    raise NeurouteError("workflow/scales not found; run from the folder that holds the Snakefile")


def load_scale(name: str) -> Scale:
    """A scale by name (a file in workflow/scales) or by path (ends in .yaml)."""
    path = Path(name) if name.endswith(".yaml") else scales_dir() / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in scales_dir().glob("*.yaml")))
        raise NeurouteError(f"scale '{name}': no file {path}; known scales: {known}")
    return validated(Scale, _read_yaml(path), str(path))
