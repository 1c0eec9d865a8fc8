"""`precision: auto`: fp32 or bf16 for a run, whichever is faster on this machine.

The run's own network is timed in both, once; what came out is kept beside the machine's rates, so that all later jobs
choose alike.  bf16 has to be faster by `MARGIN`: it rounds, and searches ask for smaller decisions than those that are
timed.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any, Literal

import torch
from torch import Tensor

from neuroute.accounting.rates import keep_factor, kept_factor
from neuroute.core import device as devices
from neuroute.datasets.problem_spec import SPEC
from neuroute.decoding.environment import ENVIRONMENT, Batch
from neuroute.decoding.memory import autocast
from neuroute.decoding.rollout import precision_of
from neuroute.decoding.served import begin
from neuroute.networks.base import MultiStartNetwork, PathNetwork, RoutingNetwork
from neuroute.networks.weights import build
from neuroute.plan.config import Config
from neuroute.plan.objects import Dataset, Run
from neuroute.plan.specs import Precision

Purpose = Literal["training", "decoding"]
MARGIN = 1.2
PAIRS = 5  # of timings
TOKENS = {"cpu": 2048, "cuda": 1 << 16}  # of all instances that are timed together
TOURS = 100  # of an instance
HIDDEN = -1e3  # instead of the logits -inf of what is closed


def settle(run: Run, config: Config, purpose: Purpose, threads: int | None, say: Callable[[str], None]) -> Run:
    """The run with the faster precision instead of `auto`; as it is if it names one that this machine has.

    On a CPU without products in bf16 that is fp32: bf16 was 0.13 to 2.1 times as fast there, mostly below once.
    Several processes that ask at once get the same answer: the first one measures.  Raises NeurouteError for a damaged
    file of rates, and for a device that is not there.
    """
    if run.training.precision == "fp32":
        return run
    place = devices.claim(config.device, config.jobs_per_gpu, config.tf32)
    if not devices.has_bf16(place):
        say(f"{run.id}: {purpose} in fp32, as this CPU has no products in bf16")
        return in_precision(run, "fp32")
    if run.training.precision == "bf16":
        return run
    if threads:
        torch.set_num_threads(devices.threads_here(threads))
    shape = f"{run.network.canonical()} | {run.validation.dataset.problem}{run.validation.dataset.n}"
    key = f"{devices.name(place)} | {torch.get_num_threads()} threads | {purpose} | {shape}"
    with kept_factor(config, key) as factor:
        if factor is None:
            factor = _factor_of(run, place, purpose)
            keep_factor(config, key, factor)
    precision: Precision = "bf16" if factor >= MARGIN else "fp32"
    timed = f"bf16 is {factor:.2f} times as fast as fp32 here" if factor else "its decisions cannot be timed alone"
    say(f"{run.id}: {purpose} in {precision} ({timed})")
    return in_precision(run, precision)


def in_precision(run: Run, precision: Precision) -> Run:
    """Return the run as it is trained and measured in another precision."""
    return run.model_copy(update={"training": run.training.model_copy(update={"precision": precision})})


def _factor_of(run: Run, place: torch.device, purpose: Purpose) -> float:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = build(run.network).to(place)
        if not isinstance(net, PathNetwork | MultiStartNetwork):
            return 0.0
        return factor_of(net, run.validation.dataset, place, learns=purpose == "training")


def factor_of(net: RoutingNetwork, dataset: Dataset, place: torch.device, *, learns: bool) -> float:
    """Seconds in fp32 over those in bf16, of instances like those of the data set: the median of interleaved pairs.

    What is timed is an encoder and as many decisions as nodes, of half of the nodes where those that are left shrink;
    with `learns` their gradients too.  On a CPU it is processor time.
    """
    environment, number = ENVIRONMENT.of(dataset.problem), max(1, TOKENS[place.type] // dataset.nodes)
    batch: Batch = environment.batch(
        SPEC.of(dataset.problem).instances(dataset.model_copy(update={"count": number})), place
    )
    batch = batch.to(next(net.parameters()).dtype)
    net.train(learns)
    ratios = []
    for pair in range(PAIRS + 1):
        seconds = {
            precision: _seconds(net, environment, batch, place, precision, learns)
            for precision in (("fp32", "bf16") if pair % 2 else ("bf16", "fp32"))
        }
        ratios.append(seconds["fp32"] / seconds["bf16"])
    net.zero_grad(set_to_none=True)
    return median(ratios[1:])  # the first one warms up


def _seconds(
    net: RoutingNetwork, environment: Any, batch: Batch, place: torch.device, precision: str, learns: bool
) -> float:
    decisions = batch.coords.shape[1]
    with torch.set_grad_enabled(learns), autocast(place, precision):
        if isinstance(net, MultiStartNetwork):
            prepared = environment.prepare(net, batch, 0)
            encoding = _timed(lambda: environment.prepare(net, batch, 0).nodes, place)
            most = 1 if net.single_start else min(TOURS, decisions - environment.depots)
            rollout = begin(net, batch, batch.start_nodes(most), precision_of(prepared))
            state = rollout.context, rollout.current, rollout.mask
            prepared = getattr(net, "begin_episode", lambda prepared, *_: prepared)(_cut(prepared), *state)
            best = net.decide if learns else net.decide_best
            return encoding + decisions * _timed(lambda: best(prepared, *state), place)
        assert isinstance(net, PathNetwork)
        if learns:  # an encoder runs at every decision
            return _timed(lambda: net.decide(*_path(net, net.encode(*batch.features), 1)), place)
        path = _path(net, net.encode(*batch.features), 2)
        return _timed(lambda: net.encode(*batch.features), place) + decisions * _timed(lambda: net.decide(*path), place)


def _cut(prepared: Any) -> Any:
    """What decisions share, without the encoder's graph."""
    return type(prepared)(*(x.detach().requires_grad_() if _has_graph(x) else x for x in prepared))


def _has_graph(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def _path(net: PathNetwork, rows: Tensor, part: int) -> tuple[Tensor, ...]:
    """What a decision reads of the rows of all nodes: of one `part`-th of them, of the CVRP with a full vehicle."""
    rows = rows[:, : max(4, rows.shape[1] // part)].clone()
    if net.problem == "cvrp":
        return rows.roll(-1, dims=1), rows.new_ones(len(rows), dtype=torch.float32)
    net.arrive(rows)
    return (rows,)


def _timed(run: Callable[[], Tensor], place: torch.device) -> float:
    """Seconds of a call, and of its gradients if it has some."""
    clock = time.perf_counter if place.type == "cuda" else time.process_time
    devices.synchronize(place)
    began = clock()
    result = run()
    if result.requires_grad:
        result.clamp(min=HIDDEN).sum().backward()
    devices.synchronize(place)
    return clock() - began
