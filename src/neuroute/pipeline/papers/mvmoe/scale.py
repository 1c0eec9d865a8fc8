"""The sizes of paper `mvmoe`."""

from typing import Annotated

from pydantic import Field, model_validator

from neuroute.pipeline.plan.shapes import BaselineShape, Nodes, Positive, names_each
from neuroute.problems.vrp import SWITCHES
from neuroute.specs.data import Spec as Strict
from neuroute.specs.trainings import Reinforced

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
    "figure6b": {
        "4E": DEFAULT,
        "8E": "h_8e",
        "16E": "h_16e",
        "8E (100M)": "h_8e_100m",
        "16E (200M)": "h_16e_200m",
    },
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


class MvmoeScale(Strict):
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

    def other_solvers_of(self, variant: str) -> list[str]:
        return self.other_solvers.get(variant, self.other_solvers.get(OTHERS, []))

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
