"""How trainings count: in epochs over as many samples, which end or do not end with a validation."""

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

Positive = Annotated[int, Field(ge=1)]
Validations = Annotated[int, Field(ge=1, le=100_000)]  # of a training


class Learning:
    """What is true of a kind of training, where its class says nothing else."""

    learns_decisions: ClassVar[bool] = True  # one at a time; False: it adds up gradients itself, or of whole solutions
    continues_start: ClassVar[bool] = True  # with the weights that it starts from; False: they only judge it


class InEpochs(Learning):
    """Counts the batches of a training in epochs over the same number of samples."""

    if TYPE_CHECKING:  # fields or properties of the training's class

        @property
        def kind(self) -> str: ...
        @property
        def samples(self) -> int: ...
        @property
        def batch_size(self) -> int: ...
        @property
        def epochs(self) -> int: ...
        @property
        def validations(self) -> int: ...

    @property
    def scheme(self) -> str:
        """The part of a problem that trains so."""
        return self.kind

    @property
    def batches_per_epoch(self) -> int:
        return -(-self.samples // self.batch_size)

    @property
    def batches(self) -> int:
        return self.batches_per_epoch * self.epochs

    @property
    def validate_after(self) -> set[int]:
        """Numbers of batches after which a run is validated: evenly spaced, the last at its end."""
        return {round(self.batches * i / self.validations) for i in range(1, self.validations + 1)}
