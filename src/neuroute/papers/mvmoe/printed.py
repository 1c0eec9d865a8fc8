"""Numbers that stand in the text of paper `mvmoe`, but in no table."""

from neuroute.core.errors import NeurouteError
from neuroute.rendering.study import Study


def quoted(study: Study, quantity: str) -> float:
    rows = study.published("quoted")
    found = rows[rows.quantity == quantity]
    if len(found) != 1:
        raise NeurouteError(f"{study.artifact.id}: {len(found)} quoted values of {quantity}; one is needed")
    return float(found.value.item())
