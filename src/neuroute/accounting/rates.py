"""What a machine does in a second: typical values, for what was not rehearsed (`rehearsed`)."""

import math
from bisect import bisect_left

from neuroute.accounting.rehearsed import BySize, Kind, rehearsal_of
from neuroute.plan.config import Config
from neuroute.plan.specs import Spec


class DeviceRates(Spec):
    """Of a GPU, or of one thread of a CPU."""

    name: str
    gflops: dict[str, BySize]  # GFLOP/s of an update by precision and width: narrow networks reach less
    # Microseconds of a layer by width, however few numbers it sees: forward, and in an update, optimizer and all.
    layer_us: BySize
    update_us: BySize


class Rates(Spec):
    """Of a machine.  `solvers`: seconds of one core for one instance of n nodes."""

    start_s: float = 12.0  # from the start of a process to its first batch: Python, torch, the plan, the data
    node_us: float = 0.2  # CPU microseconds for each node of an instance that is drawn and checked
    devices: dict[Kind, DeviceRates]
    solvers: dict[str, BySize] = {}


# CPU: one core of an EPYC at 2.6 GHz.  GPU: an H100's peak rates at the shares that a CPU reaches; not measured.
TYPICAL = Rates(
    devices={
        "cpu": DeviceRates(
            name="typical core",
            gflops={"fp32": {16: 8.0, 128: 45.0, 512: 70.0}, "bf16": {16: 8.0, 128: 80.0, 512: 150.0}},
            layer_us={16: 150.0, 512: 300.0},
            update_us={16: 450.0, 512: 1500.0},
        ),
        "cuda": DeviceRates(
            name="typical GPU",
            gflops={"fp32": {128: 40e3, 512: 45e3}, "tf32": {128: 90e3, 512: 140e3}, "bf16": {128: 130e3, 512: 250e3}},
            layer_us={128: 200.0},
            update_us={128: 700.0},
        ),
    },
    # One 2.6 GHz EPYC core, from 200 nodes on with only two or three instances.
    solvers={
        "concorde": {20: 0.0076, 50: 0.04, 100: 0.18, 200: 0.38, 500: 15.0},
        "concorde-6h": {20: 0.0076, 50: 0.04, 100: 0.18, 200: 0.38, 500: 15.0},
        "lkh": {20: 0.0011, 50: 0.009, 100: 0.048, 200: 0.2, 500: 2.0},
        "lkh-long": {20: 0.005, 100: 0.41, 500: 14.7},
        "lkh3": {20: 0.057, 50: 0.17, 100: 0.44, 200: 0.97, 500: 5.2, 1000: 30.0},  # CVRP
        "lkh3-short": {10: 0.05, 20: 0.08, 50: 0.2},  # VRP: means over four variants
        "hgs": {20: 0.27, 50: 0.8, 100: 2.6},  # CVRP
        "hgs-long": {20: 3.1, 50: 8.9, 100: 25.0},  # CVRP, one instance each, on a busy core
        "hgs-short": {20: 0.018, 50: 0.08, 100: 0.2},  # CVRP
        "ortools-short": {10: 0.07, 20: 0.12, 50: 0.34},  # VRP: means over variants
        "pyvrp-short": {10: 0.014, 20: 0.03, 50: 0.14},
        "pyvrp": {10: 0.37, 20: 0.9, 50: 2.0},
        "pyvrp-long": {20: 10.4, 50: 26.8},
        # Their budgets, which are seconds.
        "ortools": {10: 4.0, 100: 40.0},
        "ortools-network": {10: 4.0, 100: 40.0},
        "ortools-x10": {10: 40.0, 100: 400.0},
    },
)


SIX_HOURS = 6 * 3600.0
LIMITS = {"concorde-6h": SIX_HOURS, "lkh": SIX_HOURS, "lkh-long": SIX_HOURS}  # of an instance of 5,000 nodes and more


def rates_of(config: Config) -> Rates:
    """Typical rates, and solvers' times as they were rehearsed; what config.yaml says goes before both.

    Raises NeurouteError for a damaged file of the rehearsal.
    """
    rehearsal = rehearsal_of(config)
    devices = {}
    for kind, configured in (("cpu", config.machine.cpu_gflops_per_thread), ("cuda", config.machine.gpu_tflops)):
        device = TYPICAL.devices[kind]  # type: ignore[index]
        if configured is not None:
            rate = configured if kind == "cpu" else 1e3 * configured
            device = device.model_copy(update={"gflops": {p: {128: rate} for p in ("fp32", "tf32", "bf16")}})
        devices[kind] = device
    solvers = TYPICAL.solvers | {
        name: _by_size(TYPICAL.solvers.get(name, {}), points) for name, points in rehearsal.solvers.items()
    }
    start_s = rehearsal.start_s or TYPICAL.start_s
    return TYPICAL.model_copy(update={"devices": devices, "solvers": solvers, "start_s": start_s})


def _by_size(typical: BySize, rehearsed: BySize) -> BySize:
    """What was rehearsed; sizes beyond it take as much more or less than is typical as its nearest."""
    if not typical:
        return rehearsed
    low, high = min(rehearsed), max(rehearsed)
    ratios = {n: rehearsed[n] / at_size(typical, n, beyond=True) for n in (low, high)}
    below = {n: seconds * ratios[low] for n, seconds in typical.items() if n < low}
    above = {n: seconds * ratios[high] for n, seconds in typical.items() if n > high}
    return below | rehearsed | above


def at_size(points: BySize, n: float, beyond: bool = False) -> float:
    """Interpolate on log-log axes.  Outside it is the nearest point's value, or with `beyond` larger sizes go on so."""
    sizes = sorted(points)
    if len(sizes) == 1 or n <= sizes[0] or (n >= sizes[-1] and not beyond):
        return points[min(sizes, key=lambda size: abs(size - n))]
    right = min(bisect_left(sizes, n), len(sizes) - 1)
    low, high = sizes[right - 1], sizes[right]
    slope = math.log(points[high] / points[low]) / math.log(high / low)
    return points[low] * math.exp(slope * math.log(n / low))
