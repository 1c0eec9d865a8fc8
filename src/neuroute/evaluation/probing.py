"""What probes of single networks share: the network that they refuse, the record of what was probed, and arrays."""

import json
from collections.abc import Mapping

from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.evaluation.loaded import Arrays, LoadedModel, Rows, describe_test
from neuroute.networks.weights import parameters
from neuroute.specs.objects import Dataset, Decoding


def wrong_network(probe: str, purpose: str, loaded: LoadedModel) -> NeurouteError:
    """The error for a network that a probe is not made for; wanted: "rounds are drawn of SIT"."""
    network = f"{type(loaded.net).__name__} {json.dumps(loaded.run.network.arguments)}"
    return NeurouteError(f"{probe}: {purpose}, not of {network}; choose such a run")


def parameter_rows(
    loaded: LoadedModel, group: str, *datasets: Dataset, instances: int | None = 1, decoding: Decoding | None = None
) -> Rows:
    """Return a record for each data set: the parameters of the model, so that drawings say what they were probed on.

    instances: of each data set; None: all of them.
    """
    values = {"parameters": parameters(loaded.net)}
    tests = (describe_test(dataset, instances=instances) for dataset in datasets)
    return [row for test in tests for row in loaded.rows(group, test, decoding or Decoding(), values, 0.0)]


def to_arrays(tensors: Mapping[str, Tensor]) -> Arrays:
    """float32 on the CPU."""
    return {name: tensor.float().cpu().numpy() for name, tensor in tensors.items()}
