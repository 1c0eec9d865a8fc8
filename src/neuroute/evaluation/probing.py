"""What probes of single networks share: what they refuse, the record of what was probed, and tensors as arrays."""

import json
from collections.abc import Mapping

from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.evaluation.loaded import Arrays, LoadedModel, Rows, describe_test
from neuroute.networks.weights import parameters
from neuroute.specs.objects import Dataset, Decoding


def check_decision(probe: str, decision: int, last: int, nodes: int) -> None:
    """Raises NeurouteError if the probe asks for another decision than 1 to `last`."""
    if not 1 <= decision <= last:
        raise NeurouteError(f"{probe}: decision {decision}; choose one of 1 to {last} of {nodes} nodes")


def check_instance(probe: str, instance: int, count: int) -> None:
    """Raises NeurouteError if there is no such instance."""
    if not 0 <= instance < count:
        raise NeurouteError(f"{probe}: instance {instance}; choose one of 0 to {count - 1}")


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
