"""Paper `mvmoe`: its block in a scale file, models and test sets by the paper's numbers, and trainings."""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from neuroute.pipeline.plan.changes import declare_run
from neuroute.pipeline.plan.claims import AVERAGING, Protocol, on_benchmark
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.needs import Need, by_solvers
from neuroute.pipeline.plan.paper import Paper, borrow_runs
from neuroute.pipeline.plan.shapes import BaselineShape, Nodes, Positive, names_each
from neuroute.pipeline.rendering.cells import MEAN_OF_GAPS
from neuroute.problems.vrp import SWITCHES
from neuroute.specs.data import with_count
from neuroute.specs.objects import (
    BenchmarkEvaluation,
    ConstructionEvaluation,
    Dataset,
    Decoding,
    Labels,
    Measurement,
    Network,
    Reinforced,
    Run,
    Spec,
    Supervised,
)

SIZES = (50, 100)
TRAINED = ("CVRP", "OVRP", "VRPB", "VRPL", "VRPTW", "OVRPTW")  # Table 1
UNSEEN = (  # Table 2
    *("OVRPB", "OVRPL", "VRPBL", "VRPBTW", "VRPLTW"),
    *("OVRPBL", "OVRPBTW", "OVRPLTW", "VRPBLTW", "OVRPBLTW"),
)
OTHERS = "others"  # key of what holds for all variants that are not named
DEFAULT = "h_default"  # MVMoE/4E at half length, from which ablations depart
TABLE5 = {  # alpha, norm, and experts of a token
    DEFAULT: ("0.01", "instance", 2),
    "h_alpha0001": ("0.001", "instance", 2),
    "h_alpha01": ("0.1", "instance", 2),
    "h_alpha1": ("1.0", "instance", 2),
    "h_batch": ("0.01", "batch", 2),
    "h_layer": ("0.01", "layer", 2),
    "h_nonorm": ("0.01", "none", 2),
    "h_k1": ("0.01", "instance", 1),
    "h_k3": ("0.01", "instance", 3),
}
ABLATIONS: dict[str, dict[str, str]] = {  # labels of Table 5 are the published rows' method_params
    "figure6a": {
        "Raw": "h_raw",
        "Enc (every two)": "h_enc_even",
        "Enc (last two)": "h_enc_last2",
        "Enc (all)": "h_enc_all",
        "Dec": "h_dec",
        "Enc + Dec": DEFAULT,
    },
    "figure6b": {"4E": DEFAULT, "8E": "h_8e", "16E": "h_16e", "8E (100M)": "h_8e_100m", "16E (200M)": "h_16e_200m"},
    "figure6c": {
        "node, input choice": DEFAULT,
        "node, expert choice": "h_node_ec",
        "instance, input choice": "h_inst_ic",
        "instance, expert choice": "h_inst_ec",
        "problem, input choice": "h_prob_ic",
        "problem, random": "h_prob_random",
        "node, expert choice, Enc (all)": "h_enc_ec",
    },
    "figure6d": {
        "dense": "h_mtl",
        "base": DEFAULT,
        "hierarchical": "h_4eL",
        "random hierarchical": "h_random_hier",
        "soft MoE": "h_soft",
    },
    "table5": {f"alpha={alpha};norm={norm};K={k};epochs=2500": name for name, (alpha, norm, k) in TABLE5.items()},
}
ABLATIONS["figure6e"] = ABLATIONS["figure6d"]
# Runs of half length besides the default one.
ABLATED = list(dict.fromkeys(name for of in ABLATIONS.values() for name in of.values() if name != DEFAULT))


class MvmoeScale(Spec):
    """What the roles of paper `mvmoe` stand for at this scale.  Keys are the paper's numbers.

    Table 8's LEHD is that of `scaling`, unless it has a number of epochs of its own here.
    """

    network: Annotated[BaselineShape, Field(description="POMO, POMO-MTL and MVMoE (Section 5, Appendix B.1)")]
    sizes: Annotated[dict[int, Nodes], Field(description="the paper's n -> customers here")]
    test_counts: Annotated[dict[int, Positive], Field(description="the paper's n -> test instances of a variant here")]
    references: Annotated[
        dict[str, str | dict[int, str]],
        Field(description="variant, or `others` -> solver of the solutions that gaps are against, or one for each n"),
    ]
    other_solvers: Annotated[
        dict[str, list[str]], Field(description="variant, or `others` -> solvers that tables show besides")
    ] = {}
    validation_count: Annotated[int, Field(ge=1, description="validation instances of each variant")]
    trainings: Annotated[
        dict[int, Reinforced],
        Field(description="the paper's n -> the training; models of 50 stand in for those of 100"),
    ]
    ablation: Annotated[Reinforced, Field(description="the training of ablations, which is half as long (Section 5.2)")]
    few_shot: Annotated[Reinforced, Field(description="on one variant, from the weights of 50 (Figure 5)")]
    few_shot_count: Annotated[
        Positive | None,
        Field(description="test instances of Figure 5, where few_shot has several stages; null: those of Table 2"),
    ] = None
    ablations: Annotated[list[str], Field(description="ablations that are trained here besides h_default")]
    construction_size: Annotated[int, Field(ge=4, description="Table 6's 1000 customers -> here")]
    construction_count: Annotated[int, Field(ge=1, description="Table 6: timed instances of each variant")]
    routing_count: Annotated[int, Field(ge=1, description="Figures 8 and 9: instances of each variant")]
    routing_steps: Annotated[int, Field(ge=1, description="Figure 8: decisions that are drawn")] = 20
    set_x: Annotated[
        tuple[int, int], Field(description="Table 7: Set-X's instances with at least, and less than, so many nodes")
    ]
    set_x_large: Annotated[tuple[int, int], Field(description="Table 8, as `set_x`")]
    set_x_large_images: Annotated[
        bool, Field(description="Table 8: eight images of each instance; false: only the instance, in an eighth of it")
    ] = True
    solomon: Annotated[list[str], Field(min_length=1, description="Table 7: classes of Solomon's instances")]
    lehd_epochs: Annotated[
        int | None, Field(ge=1, description="Table 8: epochs of both LEHDs; null: those of scaling.lehd_cvrp")
    ] = None
    rrc: Annotated[int, Field(ge=1, description="Table 8's 100 iterations of random re-construct -> here")]

    @property
    def trained_sizes(self) -> list[int]:
        """The paper's sizes that models are trained for here."""
        return sorted(self.trainings)

    def reference_of(self, variant: str, size: int) -> str:
        solver = self.references.get(variant) or self.references[OTHERS]
        return solver if isinstance(solver, str) else solver[size]

    _named = names_each(sizes=SIZES, test_counts=SIZES, differ=["sizes"])

    @model_validator(mode="after")
    def _variants_complete(self) -> "MvmoeScale":
        if SIZES[0] not in self.trainings or set(self.trainings) - set(SIZES):
            raise ValueError(f"trainings: {sorted(self.trainings)}; give {SIZES[0]}, and {SIZES[1]} if it is trained")
        for name in ("references", "other_solvers"):
            if strange := [key for key in getattr(self, name) if key not in SWITCHES and key != OTHERS]:
                variants = ", ".join(SWITCHES)
                raise ValueError(f"{name}: no variant '{strange[0]}'; there are {variants}, and `{OTHERS}`")
        for variant, solvers in self.references.items():
            if isinstance(solvers, dict) and set(solvers) != set(SIZES):
                raise ValueError(f"references.{variant}: a solver for each of {list(SIZES)}, got {sorted(solvers)}")
        missing = [variant for variant in (*TRAINED, *UNSEEN) if variant not in self.references]
        if OTHERS not in self.references and missing:
            raise ValueError(f"references: no solver of {missing[0]}; name it, or `{OTHERS}`")
        if strange := [name for name in self.ablations if name not in ABLATED]:
            raise ValueError(f"ablations: no '{strange[0]}'; there are {', '.join(ABLATED)}")
        if len(set(self.ablations)) < len(self.ablations):
            raise ValueError(f"ablations {self.ablations} must all differ")
        return self

    @model_validator(mode="after")
    def _trainings_fit(self) -> "MvmoeScale":
        for size in self.trained_sizes:
            self._fits(f"trainings.{size}", self.trainings[size], size)
        self._fits("ablation", self.ablation, SIZES[0])
        self._fits("few_shot", self.few_shot, SIZES[0])
        return self

    def _fits(self, name: str, training: Reinforced, size: int) -> None:
        """A declaration adds what its variants are, and the weight of the balance loss."""
        here = self.sizes[size]
        if odd := [stage.sizes for stage in training.stages if stage.sizes != (here, here)]:
            raise ValueError(f"{name}: sizes are {odd[0]}; the paper's {size} customers are sizes.{size}, {here}, here")
        if any(stage.variants or stage.capacities for stage in training.stages):
            raise ValueError(f"{name}: leave variants and capacities of its stages out: each run has its own")
        if training.batches_before or training.balance or training.fresh:
            raise ValueError(f"{name}: leave batches_before, balance and fresh out: each run has its own")


__all__ = ["ABLATIONS", "DEFAULT", "SIZES", "TRAINED", "UNSEEN"]
KEY = "mvmoe"
SCALING = "scaling"  # lends LEHD
VARIANTS = (*TRAINED, *UNSEEN)
MULTI_TASK = {"POMO-MTL": "mtl", "MVMoE/4E": "moe4e", "MVMoE/4E-L": "moe4eL"}
FEW = ("VRPBLTW", "OVRPBLTW")  # Figure 5
LEHD, LEHD_LIGHT = "lehd_cvrp", "lehd4eL_cvrp"  # Table 8
WITHOUT_OVRPTW = "mtl_no_ovrptw_50"  # Figure 7
MOST_OF_SOLOMON = 101  # nodes of an instance
CONSTRUCTED = 1000  # customers of Table 6
GREEDY = Decoding()
MULTI = Decoding(starts="all")  # Table 6
X8 = Decoding(starts="all", augment=True)  # the other tables


run_id = f"{KEY}/{{}}".format  # name -> id


def trained_size(scale: Scale, size: int) -> int:
    """The paper's size of the models that solve `size` here: those of 50 where those of 100 are not trained."""
    return size if size in scale[MvmoeScale].trained_sizes else SIZES[0]


def single(scale: Scale, variant: str, size: int) -> str:
    """POMO of one problem."""
    return f"pomo_{variant.lower()}_{trained_size(scale, size)}"


def multi(scale: Scale, method: str, size: int) -> str:
    """POMO-MTL or an MVMoE: `method` is one of `MULTI_TASK`."""
    return f"{MULTI_TASK[method]}_{trained_size(scale, size)}"


def few(method: str, variant: str) -> str:
    """What goes on from the model of 50 customers with one problem that it has not seen (Figure 5)."""
    return f"few_{MULTI_TASK[method]}_{variant.lower()}"


def lehd(scale: Scale) -> dict[str, str]:
    """Table 8's methods besides those of Table 7 -> ids of their runs.  The dense one may be that of `scaling`."""
    dense = run_id(LEHD) if scale[MvmoeScale].lehd_epochs else f"{SCALING}/{LEHD}"
    return {"LEHD": dense, "LEHD/4E-L": run_id(LEHD_LIGHT)}


def ablations(scale: Scale) -> tuple[str, ...]:
    """Names of the runs of half length that are trained here, the default first."""
    return (DEFAULT, *(name for name in ABLATED if name in scale[MvmoeScale].ablations))


def trained_ablations(scale: Scale, artifact: str) -> dict[str, str]:
    """Of an artifact's ablations those that are trained here: label -> run name."""
    here = ablations(scale)
    return {label: name for label, name in ABLATIONS[artifact].items() if name in here}


def test_set(scale: Scale, variant: str, size: int) -> Dataset:
    m = scale[MvmoeScale]
    return Dataset(problem="vrp", variant=variant, n=m.sizes[size], count=m.test_counts[size])


def reference(scale: Scale, variant: str, size: int) -> Labels:
    """A test set as the solver solves it that gaps are against."""
    return scale.reference(test_set(scale, variant, size), scale[MvmoeScale].reference_of(variant, size))


def adapted(scale: Scale, variant: str) -> Labels:
    """Figure 5's test set of a problem."""
    first, count = reference(scale, variant, SIZES[0]), scale[MvmoeScale].few_shot_count
    return with_count(first, count) if count else first


def by_all_solvers(scale: Scale, variant: str, size: int) -> tuple[Labels, ...]:
    """A test set as each solver that is run on it solves it, the reference first."""
    first, m = reference(scale, variant, size), scale[MvmoeScale]
    others = m.other_solvers.get(variant, m.other_solvers.get(OTHERS, []))
    return by_solvers(first, [first.solver, m.reference_of(variant, size), *others])


def validation(scale: Scale, variant: str, size: int = SIZES[0]) -> Labels:
    """Training logs gaps on instances of the training size, by the solver of the references."""
    return scale.validation(lambda s: reference(s, variant, size), scale[MvmoeScale].validation_count)


def constructed(scale: Scale, variant: str) -> Dataset:
    """The instances whose seconds Table 6 shows."""
    m = scale[MvmoeScale]
    return Dataset(problem="vrp", variant=variant, n=m.construction_size, count=m.construction_count)


def rrc(scale: Scale) -> Decoding:
    """Table 8: RRC100 of the LEHD models."""
    return Decoding(method="rrc", iterations=scale[MvmoeScale].rrc)


class RoutingEvaluation(Measurement):
    """Where a mixture's gates send nodes, by variant, and real routings and routes to draw (mvmoe, Figures 1-4, 8, 9).

    One instance or more of each variant; gates are followed over the first `steps` decisions.
    """

    entry: ClassVar[str] = "neuroute.pipeline.papers.mvmoe.probe:measure"
    kind: Literal["routing"] = "routing"
    name: str = "routing"
    datasets: tuple[Dataset, ...]
    steps: int = Field(default=20, ge=1)

    def solved(self) -> Iterator[tuple[Dataset, Decoding]]:
        return ((dataset, Decoding()) for dataset in self.datasets)


def on_set_x(scale: Scale, run: str, name: str, *decodings: Decoding) -> BenchmarkEvaluation:
    """The instances of Table 7 (`set_x`) or 8 (`set_x_large`)."""
    nodes = getattr(scale[MvmoeScale], name)
    return scale.on_benchmark(run, "cvrplib", nodes, name=name, sets=("X",), decodings=decodings or (X8,))


def on_large(scale: Scale) -> Decoding:
    """Table 8: how POMO, POMO-MTL and MVMoE solve its instances."""
    return X8 if scale[MvmoeScale].set_x_large_images else MULTI


def construction(scale: Scale, method: str) -> ConstructionEvaluation:
    """One instance at a time, by the model of 100 customers (Table 6)."""
    datasets = tuple(constructed(scale, variant) for variant in VARIANTS)
    run = run_id(multi(scale, method, SIZES[-1]))
    return ConstructionEvaluation(run=run, datasets=datasets, decoding=MULTI)


def routing_needs(*methods: str) -> Callable[[Scale], list[Need]]:
    """Of drawings of these mixtures: the models of 50 customers on instances that they are not tested on."""

    def routing(scale: Scale, method: str) -> RoutingEvaluation:
        m, run = scale[MvmoeScale], run_id(multi(scale, method, SIZES[0]))
        n, count = m.sizes[SIZES[0]], m.routing_count
        datasets = (Dataset(problem="vrp", variant=v, split="val", n=n, count=count) for v in VARIANTS)
        return RoutingEvaluation(run=run, datasets=tuple(datasets), steps=m.routing_steps)

    return lambda scale: [routing(scale, method) for method in methods]


SOURCE = "files of its authors"
MEAN = AVERAGING[MEAN_OF_GAPS]


def best_solver(variant: str, size: int) -> str:
    """The solver with the best mean, which the paper marks with a star."""
    if variant in ("CVRP", "VRPTW"):
        return "HGS"
    return "LKH3" if size == SIZES[-1] and variant in ("OVRP", "VRPL") else "OR-Tools (x10)"


def protocol(scale: Scale) -> Iterator[Protocol]:
    """The sixteen problems at two sizes, timed instances, Set-X and Solomon's."""
    for size in SIZES:
        for variant in VARIANTS:
            labels, name = reference(scale, variant, size), f"{variant}{size}"
            yield Protocol(name, labels, 1000, best_solver(variant, size), (X8,), SOURCE, MEAN, shown=MEAN_OF_GAPS)
    for variant in FEW if scale[MvmoeScale].few_shot_count else ():
        labels, name = adapted(scale, variant), f"{variant}{SIZES[0]}, few-shot"
        yield Protocol(name, labels, 1000, best_solver(variant, SIZES[0]), (X8,), SOURCE, MEAN, shown=MEAN_OF_GAPS)
    for variant in VARIANTS:
        name = f"{variant}{CONSTRUCTED}"
        yield Protocol(name, constructed(scale, variant), None, "no gaps", (X8,), averaging="no gaps", shown=None)
    searched = (Decoding(), X8, Decoding(method="rrc", iterations=100))
    yield on_benchmark("cvrplib", 28, X8, only=("table7",))
    yield on_benchmark("solomon", 28, X8, only=("table7",))
    yield on_benchmark("cvrplib", 32, *searched, only=("table8",))


MVMOE = "neuroute.networks.mvmoe:MvMoe"
BALANCE = 0.01  # alpha of Equation 3 as the paper has it; 0.001 in the published code
DENSE: dict[str, Any] = {"experts": 0}
OF_METHOD: dict[str, dict[str, Any]] = {"mtl": DENSE, "moe4e": {}, "moe4eL": {"hierarchy": "step"}}
OF_ABLATION: dict[str, dict[str, Any]] = {  # what of MVMoE/4E is otherwise; of Table 5's its labels say that
    "h_raw": {"positions": ("raw",)},
    "h_enc_all": {"positions": ("enc",)},
    "h_dec": {"positions": ("dec",)},
    "h_8e": {"experts": 8},
    "h_16e": {"experts": 16},
    "h_8e_100m": {"experts": 8},
    "h_16e_200m": {"experts": 16},
    "h_node_ec": {"method": "expert-choice"},
    "h_inst_ic": {"level": "instance"},
    "h_inst_ec": {"method": "expert-choice", "level": "instance"},
    "h_prob_ic": {"level": "problem"},
    "h_prob_random": {"method": "random", "level": "problem"},
    "h_enc_ec": {"method": "expert-choice", "positions": ("enc",)},
    "h_mtl": DENSE,
    "h_4eL": OF_METHOD["moe4eL"],
    "h_random_hier": {"hierarchy": "random"},
    "h_soft": {"decoder_method": "soft"},
}
TIMES_DATA = {"h_8e_100m": 2, "h_16e_200m": 4}  # larger batches, as many of them (Section 5.2, Number of Experts)


def also_solved(scale: Scale) -> list[Labels]:
    """Test sets by each of the solvers that Tables 1 and 2 compare."""
    return [labels for size in SIZES for variant in VARIANTS for labels in by_all_solvers(scale, variant, size)]


def runs(config: Config, scale: Scale) -> list[Run]:
    out, m = list[Run](), scale[MvmoeScale]

    def add(
        name: str,
        training: Reinforced,
        variants: Sequence[str],
        size: int,
        *,
        network: Network,
        watched: Sequence[str] = (),
        balance: float = BALANCE,
        **more: Any,
    ) -> None:
        """Add a run on batches of these variants, validated on them unless others are watched.

        Without experts there is nothing to balance.
        """
        stages = tuple(stage.model_copy(update={"variants": tuple(variants)}) for stage in training.stages)
        balanced = {"stages": stages, "balance": balance if network.arguments["experts"] else 0.0}
        first, *others = [validation(scale, variant, size) for variant in watched or variants]
        out.append(
            declare_run(
                config,
                KEY,
                name,
                training.model_copy(update=balanced),
                network=network,
                n=m.sizes[size],
                validation=first,
                also_validation=tuple(others),
                **more,
            )
        )

    for size in m.trained_sizes:
        for variant in TRAINED:
            pomo = _network(scale, size, **DENSE, inputs=variant)
            name = single(scale, variant, size)
            add(name, m.trainings[size], [variant], size, network=pomo, role={"method": "POMO", "problem": variant})
        for method, short in MULTI_TASK.items():
            network, role = _network(scale, size, **OF_METHOD[short]), {"method": method, "size": size}
            # The curves of Figure 7 are of all problems.
            watched = VARIANTS if (short, size) == ("mtl", SIZES[0]) else TRAINED
            name = multi(scale, method, size)
            add(name, m.trainings[size], TRAINED, size, network=network, role=role, watched=watched)
    _add_of_figures(scale, add)
    for name in ablations(scale):
        alpha, norm, top = TABLE5.get(name, TABLE5[DEFAULT])
        of_table = {key: value for key, value in {"norm": norm, "top": top}.items() if value not in ("instance", 2)}
        even = [f"enc{layer}" for layer in range(0, m.network.depth, 2)]
        of_depth = {"h_enc_even": {"positions": even}, "h_enc_last2": {"positions": even[-2:]}}
        network = _network(scale, SIZES[0], **of_table, **(OF_ABLATION | of_depth).get(name, {}))
        larger = [{"batch_size": TIMES_DATA.get(name, 1) * stage.batch_size} for stage in m.ablation.stages]
        stages = tuple(stage.model_copy(update=more) for stage, more in zip(m.ablation.stages, larger, strict=True))
        training, role = m.ablation.model_copy(update={"stages": stages}), {"method": "ablation", "variant": name}
        add(name, training, TRAINED, SIZES[0], network=network, role=role, balance=float(alpha))
    return [*out, *_lehds(config, scale)]


def _add_of_figures(scale: Scale, add: Callable[..., None]) -> None:
    """Runs whose logs alone are shown: Figure 7's POMO-MTL without OVRPTW, and the fine-tunings of Figure 5."""
    m, size = scale[MvmoeScale], SIZES[0]
    dense = _network(scale, size, **DENSE)
    role: dict[str, object] = {"method": "POMO-MTL", "without": "OVRPTW"}
    others = [variant for variant in TRAINED if variant != "OVRPTW"]
    add(WITHOUT_OVRPTW, m.trainings[size], others, size, network=dense, role=role, watched=VARIANTS)
    # Their own batches begin where those of the training end: no customer is seen again.
    fresh = m.few_shot.model_copy(update={"fresh": True, "batches_before": m.trainings[size].batches})
    for method, short in MULTI_TASK.items():
        network, start = _network(scale, size, **OF_METHOD[short]), run_id(multi(scale, method, size))
        for variant in FEW:
            role = {"method": method, "few-shot": variant}
            add(few(method, variant), fresh, [variant], size, network=network, role=role, start=start)


def _lehds(config: Config, scale: Scale) -> list[Run]:
    """Table 8: LEHD as `scaling` trains it, or for another number of epochs, and with experts in its decoder."""
    lent, epochs = [f"{SCALING}/{LEHD}"], scale[MvmoeScale].lehd_epochs
    (dense,) = borrow_runs(config, scale, lent)
    (unchanged,) = borrow_runs(config.model_copy(update={"runs": {}}), scale, lent)
    training = unchanged.training
    assert isinstance(training, Supervised)
    if epochs is not None:
        training = training.model_copy(update={"epochs": epochs, "validations": min(training.validations, epochs)})

    def declare_lehd(name: str, kind: str, method: str) -> Run:
        network = Network(kind=kind, arguments=dense.network.arguments)
        return declare_run(
            config,
            KEY,
            name,
            training,
            role={"method": method},
            network=network,
            n=dense.n,
            data=lambda t: (with_count(dense.data[0], t.samples),),
            validation=dense.validation,
            also_validation=dense.also_validation,
        )

    first = dense if epochs is None else declare_lehd(LEHD, dense.network.kind, "LEHD")
    return [first, declare_lehd(LEHD_LIGHT, "neuroute.networks.lehd:LehdCvrpLight", "LEHD/4E-L")]


def _network(scale: Scale, size: int, **change: Any) -> Network:
    """MVMoE/4E, but for what is given."""
    m, usual = scale[MvmoeScale], {"experts": 4, "top": 2}
    arguments = m.network.model_dump() | usual | {"train_nodes": m.sizes[size]}
    return Network(kind=MVMOE, arguments=arguments | change)


PAPER = Paper(
    key=KEY,
    title="MVMoE: Multi-Task Vehicle Routing Solver with Mixture-of-Experts",
    scale=MvmoeScale,
    runs=runs,
    also_solved=also_solved,
    borrows=("scaling",),
    protocol=protocol,
)
