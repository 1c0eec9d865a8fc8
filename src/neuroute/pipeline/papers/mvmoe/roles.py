"""The models and test sets of paper `mvmoe`, by the paper's own numbers, whatever they are at a scale."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from neuroute.pipeline.papers.mvmoe.scale import ABLATED, ABLATIONS, DEFAULT, SIZES, TRAINED, UNSEEN, MvmoeScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need
from neuroute.specs.data import with_count
from neuroute.specs.evaluations import Measurement
from neuroute.specs.objects import BenchmarkEvaluation, ConstructionEvaluation, Dataset, Decoding, Labels

__all__ = ["ABLATIONS", "DEFAULT", "SIZES", "TRAINED", "UNSEEN"]
PAPER = "mvmoe"
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


run_id = f"{PAPER}/{{}}".format  # name -> id


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


def solved(scale: Scale, variant: str, size: int) -> tuple[Labels, ...]:
    """A test set as each solver that is run on it solves it, the reference first."""
    first = reference(scale, variant, size)
    others = (scale[MvmoeScale].reference_of(variant, size), *scale[MvmoeScale].other_solvers_of(variant))
    return tuple(Labels(dataset=first.dataset, solver=solver) for solver in dict.fromkeys((first.solver, *others)))


def validation(scale: Scale, variant: str, size: int = SIZES[0]) -> Labels:
    """Training logs gaps on instances of the training size, by the solver of the references."""
    test = reference(scale.without_test_files, variant, size)
    change = {"split": "val", "count": scale[MvmoeScale].validation_count}
    return Labels(dataset=test.dataset.model_copy(update=change), solver=test.solver)


def constructed(scale: Scale, variant: str) -> Dataset:
    """The instances whose seconds Table 6 shows."""
    m = scale[MvmoeScale]
    return Dataset(problem="vrp", variant=variant, n=m.construction_size, count=m.construction_count)


def routed(scale: Scale, variant: str) -> Dataset:
    """The instances whose routing Figures 1 to 4, 8 and 9 show: of the validation stream."""
    m = scale[MvmoeScale]
    return Dataset(problem="vrp", variant=variant, split="val", n=m.sizes[SIZES[0]], count=m.routing_count)


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
    least, below = getattr(scale[MvmoeScale], name)
    return BenchmarkEvaluation(
        run=run,
        name=name,
        benchmark="cvrplib",
        min_nodes=least,
        max_nodes=below,
        sets=("X",),
        names=scale.instances_of("cvrplib"),
        decodings=decodings or (X8,),
    )


def on_large(scale: Scale) -> Decoding:
    """Table 8: how POMO, POMO-MTL and MVMoE solve its instances."""
    return X8 if scale[MvmoeScale].set_x_large_images else MULTI


def on_solomon(scale: Scale, run: str) -> BenchmarkEvaluation:
    return BenchmarkEvaluation(
        run=run,
        name="solomon",
        benchmark="solomon",
        max_nodes=MOST_OF_SOLOMON + 1,
        sets=tuple(scale[MvmoeScale].solomon),
        names=scale.instances_of("solomon"),
        decodings=(X8,),
    )


def construction(scale: Scale, method: str) -> ConstructionEvaluation:
    """One instance at a time, by the model of 100 customers (Table 6)."""
    datasets = tuple(constructed(scale, variant) for variant in VARIANTS)
    run = run_id(multi(scale, method, SIZES[-1]))
    return ConstructionEvaluation(run=run, datasets=datasets, decoding=MULTI)


def routing(scale: Scale, method: str) -> RoutingEvaluation:
    """The model of 50 customers on instances that it is not tested on."""
    datasets = tuple(routed(scale, variant) for variant in VARIANTS)
    run = run_id(multi(scale, method, SIZES[0]))
    return RoutingEvaluation(run=run, datasets=datasets, steps=scale[MvmoeScale].routing_steps)


def experts_routing(scale: Scale) -> list[Need]:
    """Of drawings of MVMoE/4E."""
    return [routing(scale, "MVMoE/4E")]


def light_routing(scale: Scale) -> list[Need]:
    """Of drawings of MVMoE/4E-L."""
    return [routing(scale, "MVMoE/4E-L")]
