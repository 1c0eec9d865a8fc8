"""What `runs` in config.yaml changes of a declared run: one thing changed, and its chain alone reruns."""

from typing import Any, TypeVar

from pydantic import BaseModel

from neuroute.core.dotted import search_working_folder
from neuroute.core.errors import NeurouteError
from neuroute.plan.config import Config, validated
from neuroute.plan.digest import code_digest
from neuroute.plan.objects import Network, Run

T = TypeVar("T", bound=BaseModel)


def apply_changes(config: Config, run: str, kind: type[T], declared: BaseModel) -> T:
    """The training `declared` of a run (its id), with what config.yaml changes of it, as a `kind`.

    Raises NeurouteError that names the wrong key, or the stage that there is not.
    """
    where, values = f"config.yaml: runs.{run}.training", declared.model_dump()
    change = config.runs.get(run)
    changed = change.training.model_dump(exclude_none=True) if change else {}
    if stages := changed.pop("stages", None):
        values["stages"] = _with_stages(values.get("stages", ()), stages, f"{where}.stages")
    return validated(kind, values | changed, where)


def change_network(config: Config, run: Run) -> Run:
    """The run with the network that config.yaml gives it, if any.

    A network of the user's own may lie in a module in the working folder.  Nothing is imported.
    Raises NeurouteError if the module or the class is not there, or cannot be read.
    """
    change = config.runs.get(run.id)
    if change is None or (change.network is None and not change.arguments):
        return run
    if change.network is None:
        network = Network(kind=run.network.kind, arguments=run.network.arguments | change.arguments)
    else:
        network = Network(kind=change.network, arguments=change.arguments)
        search_working_folder()
        try:
            code_digest(network.kind)
        except (LookupError, SyntaxError, ValueError) as error:
            raise NeurouteError(
                f"config.yaml: runs.{run.id}.network: {error}; a module of your own lies beside the Snakefile or on "
                "PYTHONPATH"
            ) from None
    return run.model_copy(update={"network": network})


def seed_of(config: Config, run: str, usual: int = 0) -> int:
    """The seed that config.yaml gives a run (its id), else the `usual` one."""
    change = config.runs.get(run)
    return change.seed if change and change.seed is not None else usual


def _with_stages(declared: Any, changes: dict[str, dict[str, Any]], where: str) -> list[dict[str, Any]]:
    """Stages with their changes, by name."""
    names = [stage["name"] for stage in declared]
    for name in changes:
        if name not in names:
            raise NeurouteError(
                f"{where}.{name}: no such stage; there is {', '.join(names) or 'none in this training'}"
            )
    return [stage | changes.get(stage["name"], {}) for stage in declared]
