"""In what numbers a run computes where it is."""

from typing import Protocol

from neuroute.core import device as devices
from neuroute.plan.objects import Run


class Place(Protocol):
    """Where jobs run: as config.yaml, or a training's settings, have it."""

    @property
    def device(self) -> str: ...
    @property
    def jobs_per_gpu(self) -> int: ...
    @property
    def tf32(self) -> bool: ...


def in_precision_of_device(run: Run, place: Place) -> Run:
    """Return the run in fp32 instead of bf16 on a CPU that multiplies none; says so.

    bf16 was 0.13 to 2.1 times as fast there, mostly below once.  Raises NeurouteError for a device that is not there.
    """
    if run.training.precision == "fp32":
        return run
    if devices.has_bf16(devices.claim(place.device, place.jobs_per_gpu, place.tf32)):
        return run
    print(f"{run.id}: in fp32, as this CPU has no products in bf16")
    return run.model_copy(update={"training": run.training.model_copy(update={"precision": "fp32"})})
