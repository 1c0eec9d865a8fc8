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
    from neuroute.comparison.compare import Comparison as Comparison
    from neuroute.comparison.compare import compare as compare
    from neuroute.comparison.sweep import Sweep as Sweep
    from neuroute.comparison.sweep import sweep as sweep
    from neuroute.core.errors import NeurouteError as NeurouteError
    from neuroute.instances.instance import Instance as Instance
    from neuroute.specs.decodings import Decoding as Decoding
    from neuroute.training.callbacks import Callback as Callback
    from neuroute.training.callbacks import Progress as Progress
    from neuroute.training.callbacks import StopEarly as StopEarly
    from neuroute.user.evaluate import Evaluation as Evaluation
    from neuroute.user.evaluate import evaluate as evaluate
    from neuroute.user.files import load as load
    from neuroute.user.files import load_all as load_all
    from neuroute.user.generate import generate as generate
    from neuroute.user.model import Model as Model
    from neuroute.user.model import load_model as load_model
    from neuroute.user.solution import Solution as Solution
    from neuroute.user.solve import methods as methods
    from neuroute.user.solve import solve as solve
    from neuroute.user.train import train as train
    from neuroute.user.trainer import Trainer as Trainer
    from neuroute.user.zoo import Card as Card
    from neuroute.user.zoo import models as models

_HOMES = {
    "Callback": "neuroute.training.callbacks",
    "Card": "neuroute.user.zoo",
    "Comparison": "neuroute.comparison.compare",
    "Decoding": "neuroute.specs.decodings",
    "Evaluation": "neuroute.user.evaluate",
    "Instance": "neuroute.instances.instance",
    "Model": "neuroute.user.model",
    "NeurouteError": "neuroute.core.errors",
    "Progress": "neuroute.training.callbacks",
    "Solution": "neuroute.user.solution",
    "StopEarly": "neuroute.training.callbacks",
    "Sweep": "neuroute.comparison.sweep",
    "Trainer": "neuroute.user.trainer",
    "compare": "neuroute.comparison.compare",
    "evaluate": "neuroute.user.evaluate",
    "generate": "neuroute.user.generate",
    "load": "neuroute.user.files",
    "load_all": "neuroute.user.files",
    "load_model": "neuroute.user.model",
    "methods": "neuroute.user.solve",
    "models": "neuroute.user.zoo",
    "solve": "neuroute.user.solve",
    "sweep": "neuroute.comparison.sweep",
    "train": "neuroute.user.train",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> _typing.Any:
    """Import a public name when it is first used (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'neuroute' has no attribute '{name}'")
    value = getattr(_importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
