"""Neural routing from Python: solve, train, evaluate, compare, sweep.

    import neuroute

    instance = neuroute.load("berlin52.tsp")
    solution = neuroute.solve(instance, seconds=10)
    print(solution)
    solution.plot("berlin52.svg")

Names are imported when they are first used, so `import neuroute` takes no time, and none of torch, pandas, matplotlib.
"""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from neuroute.api.evaluate import Evaluation as Evaluation
    from neuroute.api.evaluate import evaluate as evaluate
    from neuroute.api.files import generate as generate
    from neuroute.api.files import load as load
    from neuroute.api.files import load_all as load_all
    from neuroute.api.model import Model as Model
    from neuroute.api.model import load_model as load_model
    from neuroute.api.solution import Solution as Solution
    from neuroute.api.solve import methods as methods
    from neuroute.api.solve import solve as solve
    from neuroute.api.train import Trainer as Trainer
    from neuroute.api.train import train as train
    from neuroute.api.zoo import Card as Card
    from neuroute.api.zoo import models as models
    from neuroute.core.errors import NeurouteError as NeurouteError
    from neuroute.problems.instances.instance import Instance as Instance
    from neuroute.specs.decodings import Decoding as Decoding
    from neuroute.training.callbacks import Callback as Callback
    from neuroute.training.callbacks import Progress as Progress
    from neuroute.training.callbacks import StopEarly as StopEarly
    from neuroute_compare.compare import Comparison as Comparison
    from neuroute_compare.compare import compare as compare
    from neuroute_compare.sweep import Sweep as Sweep
    from neuroute_compare.sweep import sweep as sweep

_HOMES = {
    "Callback": "neuroute.training.callbacks",
    "Card": "neuroute.api.zoo",
    "Comparison": "neuroute_compare.compare",
    "Decoding": "neuroute.specs.decodings",
    "Evaluation": "neuroute.api.evaluate",
    "Instance": "neuroute.problems.instances.instance",
    "Model": "neuroute.api.model",
    "NeurouteError": "neuroute.core.errors",
    "Progress": "neuroute.training.callbacks",
    "Solution": "neuroute.api.solution",
    "StopEarly": "neuroute.training.callbacks",
    "Sweep": "neuroute_compare.sweep",
    "Trainer": "neuroute.api.train",
    "compare": "neuroute_compare.compare",
    "evaluate": "neuroute.api.evaluate",
    "generate": "neuroute.api.files",
    "load": "neuroute.api.files",
    "load_all": "neuroute.api.files",
    "load_model": "neuroute.api.model",
    "methods": "neuroute.api.solve",
    "models": "neuroute.api.zoo",
    "solve": "neuroute.api.solve",
    "sweep": "neuroute_compare.sweep",
    "train": "neuroute.api.train",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> _typing.Any:
    """Import a public name when it is first used (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'neuroute' has no attribute '{name}'")
    try:
        value = getattr(_importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "neuroute_compare":
            raise
        from neuroute.core.dotted import how_to_get

        raise ImportError(f"neuroute.{name}: {how_to_get('compare')}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
