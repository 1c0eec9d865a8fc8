"""Maps of edges: their training by labelled tours, and what their ways to decode are called."""

from typing import Annotated, Any

from pydantic import Field

from neuroute.specs.data import Precision
from neuroute.specs.trainings import OwnTraining, Positive, Rate, Validations

WORDS = {"edge_maps:merging": "merging of edges and 2-opt", "edge_maps:tree_search": "tree search"}


class EdgeLabels(OwnTraining):
    """Training of a map of edges by labelled tours (`edge_maps.training`)."""

    samples: Annotated[int, Field(ge=1, description="labelled training instances")]
    epochs: Positive = 1
    batch_size: Positive
    learning_rate: Rate
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    precision: Precision = "fp32"
    validations: Validations = 10

    def flops_per_sample(self, counts: Any, run: Any) -> float:
        return 3 * float(counts.encoder(run.n))
