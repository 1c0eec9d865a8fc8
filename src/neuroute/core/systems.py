"""Which systems of other authors there are: folders of `systems/`, found by name."""

from collections.abc import Iterator
from typing import Any

from neuroute.core.digest import exists
from neuroute.core.dotted import resolve

# In the order of their rows; one whose folder is missing is not trained.
SYSTEMS = ("elg", "dgl", "invit", "glop", "pointerformer", "mdam", "att_gcn", "difusco", "dimes", "htsp")
WEIGHTS_ALONE = ("attention_model",)  # that no table has: published weights of theirs are read


def parts(module: str, name: str) -> Iterator[tuple[str, Any]]:
    """(system, value) of all systems that have `name` in this module of theirs."""
    for system in (*SYSTEMS, *WEIGHTS_ALONE):
        entry = f"neuroute.systems.{system}.{module}:{name}"
        if exists(entry):
            yield system, resolve(entry)
