"""How trainings count: in epochs over as many samples, which end or do not end with a validation."""

from typing import ClassVar, Protocol


class _HasEpochs(Protocol):
    @property
    def samples(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def epochs(self) -> int: ...
    @property
    def batches_per_epoch(self) -> int: ...


class _IsValidated(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def batches(self) -> int: ...
    @property
    def validations(self) -> int: ...


class Learning:
    """What is true of a kind of training, where its class says nothing else."""

    learns_decisions: ClassVar[bool] = True  # one at a time; False: it adds up gradients itself, or of whole solutions
    continues_start: ClassVar[bool] = True  # with the weights that it starts from; False: they only judge it


class InEpochs(Learning):
    """Counts the batches of a training in epochs over the same number of samples."""

    @property
    def scheme(self: _IsValidated) -> str:
        """The part of a problem that trains so."""
        return self.kind

    @property
    def batches_per_epoch(self: _HasEpochs) -> int:
        return -(-self.samples // self.batch_size)

    @property
    def batches(self: _HasEpochs) -> int:
        return self.batches_per_epoch * self.epochs

    @property
    def validate_after(self: _IsValidated) -> set[int]:
        """Numbers of batches after which a run is validated: evenly spaced, the last at its end."""
        return {round(self.batches * i / self.validations) for i in range(1, self.validations + 1)}
