"""Paper `mvmoe`: what it trains, labels and borrows; what is shown is declared beside each table and figure."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from neuroute.pipeline.papers.mvmoe import roles
from neuroute.pipeline.papers.mvmoe.roles import DEFAULT, FEW, MULTI_TASK, SIZES, TRAINED, VARIANTS, X8, adapted, run_id
from neuroute.pipeline.papers.mvmoe.scale import TABLE5, MvmoeScale
from neuroute.pipeline.plan.changes import declare_run
from neuroute.pipeline.plan.claims import AVERAGING, Protocol, on_benchmark
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.papers import borrow_runs
from neuroute.pipeline.rendering.cells import MEAN_OF_GAPS
from neuroute.specs.data import with_count
from neuroute.specs.decodings import Decoding
from neuroute.specs.objects import Labels, Network, Reinforced, Run, Supervised

SOURCE = "files of its authors"
MEAN = AVERAGING[MEAN_OF_GAPS]
BY_LKH = ("OVRP", "VRPL")  # at n = 100


def solver(variant: str, size: int) -> str:
    """The solver with the best mean, which the paper marks with a star."""
    if variant in ("CVRP", "VRPTW"):
        return "HGS"
    return "LKH3" if size == SIZES[-1] and variant in BY_LKH else "OR-Tools (x10)"


def protocol(scale: Scale) -> Iterator[Protocol]:
    """The sixteen problems at two sizes, timed instances, Set-X and Solomon's."""
    for size in SIZES:
        for variant in VARIANTS:
            labels, name = roles.reference(scale, variant, size), f"{variant}{size}"
            yield Protocol(name, labels, 1000, solver(variant, size), (X8,), SOURCE, MEAN, shown=MEAN_OF_GAPS)
    for variant in FEW if scale[MvmoeScale].few_shot_count else ():
        labels, name = adapted(scale, variant), f"{variant}{SIZES[0]}, few-shot"
        yield Protocol(name, labels, 1000, solver(variant, SIZES[0]), (X8,), SOURCE, MEAN, shown=MEAN_OF_GAPS)
    for variant in VARIANTS:
        name = f"{variant}{roles.CONSTRUCTED}"
        yield Protocol(name, roles.constructed(scale, variant), None, "no gaps", (X8,), averaging="no gaps", shown=None)
    searched = (Decoding(), X8, Decoding(method="rrc", iterations=100))
    yield on_benchmark("cvrplib", 28, X8, only=("table7",))
    yield on_benchmark("solomon", 28, X8, only=("table7",))
    yield on_benchmark("cvrplib", 32, *searched, only=("table8",))


MVMOE = "neuroute.networks.mvmoe:MvMoe"
LEHD_LIGHT_NETWORK = "neuroute.networks.lehd:LehdCvrpLight"
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
    return [labels for size in SIZES for variant in VARIANTS for labels in roles.solved(scale, variant, size)]


def runs(config: Config, scale: Scale) -> list[Run]:
    out: list[Run] = []

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
        first, *others = [roles.validation(scale, variant, size) for variant in watched or variants]
        run = declare_run(
            config,
            roles.PAPER,
            name,
            training.model_copy(update=balanced),
            network=network,
            n=scale[MvmoeScale].sizes[size],
            validation=first,
            also_validation=tuple(others),
            **more,
        )
        out.append(run)

    m = scale[MvmoeScale]
    for size in m.trained_sizes:
        for variant in TRAINED:
            pomo = _network(scale, size, **DENSE, inputs=variant)
            name = roles.single(scale, variant, size)
            add(name, m.trainings[size], [variant], size, network=pomo, role={"method": "POMO", "problem": variant})
        for method, short in MULTI_TASK.items():
            network, role = _network(scale, size, **OF_METHOD[short]), {"method": method, "size": size}
            # The curves of Figure 7 are of all problems.
            watched = VARIANTS if (short, size) == ("mtl", SIZES[0]) else TRAINED
            name = roles.multi(scale, method, size)
            add(name, m.trainings[size], TRAINED, size, network=network, role=role, watched=watched)
    _add_of_figures(scale, add)
    for name in roles.ablations(scale):
        alpha, norm, top = TABLE5.get(name, TABLE5[DEFAULT])
        of_table = {key: value for key, value in {"norm": norm, "top": top}.items() if value not in ("instance", 2)}
        network = _network(scale, SIZES[0], **of_table, **_ablated(scale, name))
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
    add(roles.WITHOUT_OVRPTW, m.trainings[size], others, size, network=dense, role=role, watched=VARIANTS)
    # Their own batches begin where those of the training end: no customer is seen again.
    fresh = m.few_shot.model_copy(update={"fresh": True, "batches_before": m.trainings[size].batches})
    for method, short in MULTI_TASK.items():
        network, start = _network(scale, size, **OF_METHOD[short]), run_id(roles.multi(scale, method, size))
        for variant in FEW:
            role = {"method": method, "few-shot": variant}
            add(roles.few(method, variant), fresh, [variant], size, network=network, role=role, start=start)


def _lehds(config: Config, scale: Scale) -> list[Run]:
    """Table 8: LEHD as `scaling` trains it, or for another number of epochs, and with experts in its decoder."""
    lent, epochs = [f"{roles.SCALING}/{roles.LEHD}"], scale[MvmoeScale].lehd_epochs
    (dense,) = borrow_runs(config, scale, lent)
    (unchanged,) = borrow_runs(config.model_copy(update={"runs": {}}), scale, lent)
    training = unchanged.training
    assert isinstance(training, Supervised)
    if epochs is not None:
        training = training.model_copy(update={"epochs": epochs, "validations": min(training.validations, epochs)})

    def declare_lehd(name: str, kind: str, method: str) -> Run:
        return declare_run(
            config,
            roles.PAPER,
            name,
            training,
            role={"method": method},
            network=Network(kind=kind, arguments=dense.network.arguments),
            n=dense.n,
            data=lambda t: (with_count(dense.data[0], t.samples),),
            validation=dense.validation,
            also_validation=dense.also_validation,
        )

    first = dense if epochs is None else declare_lehd(roles.LEHD, dense.network.kind, "LEHD")
    return [first, declare_lehd(roles.LEHD_LIGHT, LEHD_LIGHT_NETWORK, "LEHD/4E-L")]


def _network(scale: Scale, size: int, **change: Any) -> Network:
    """MVMoE/4E, but for what is given."""
    arguments = scale[MvmoeScale].network.model_dump() | {
        "experts": 4,
        "top": 2,
        "train_nodes": scale[MvmoeScale].sizes[size],
    }
    return Network(kind=MVMOE, arguments=arguments | change)


def _ablated(scale: Scale, name: str) -> dict[str, Any]:
    """ "Every-two or last-two layers", both of those with even numbers from 0 on (Section 5.2, Position of MoEs)."""
    even = [f"enc{layer}" for layer in range(0, scale[MvmoeScale].network.depth, 2)]
    of_depth = {"h_enc_even": {"positions": even}, "h_enc_last2": {"positions": even[-2:]}}
    return (OF_ABLATION | of_depth).get(name, {})


PAPER = Paper(
    key=roles.PAPER,
    title="MVMoE: Multi-Task Vehicle Routing Solver with Mixture-of-Experts",
    scale=MvmoeScale,
    runs=runs,
    also_solved=also_solved,
    borrows=("scaling",),
    protocol=protocol,
)
