"""Put a trained network among those that come with the package."""

from pathlib import Path
from typing import Any

from neuroute.core.files import write_json, write_whole
from neuroute.networks.weights import describe, parameters
from neuroute.plan.objects import Network
from neuroute.user import zoo
from neuroute.user.model import load_model


def ship(file: Path, about: dict[str, Any], folder: Path | None = None) -> zoo.Card:
    """Put a trained checkpoint among the shipped networks, with its card.

    Args:
        file: the checkpoint.
        about: what the card says beyond what the checkpoint does: name, trained_on, steps, ..., nodes, decoding, gaps.
        folder: where to; None: the package's.

    Raises:
        NeurouteError: if the card lacks something, or the checkpoint is of other code.
    """
    folder = zoo.FOLDER if folder is None else folder
    model = load_model(file, "cpu")
    facts = {
        "problem": model.problem,
        "run": model.about["run"],
        "network": describe(Network.model_validate(model.about["network"])),
        "parameters": parameters(model.net),
        "sha256": zoo.sha256(file),
        "decision": zoo.decision(model.net),
    }
    card = zoo.parse_card(facts | about, str(file))
    write_whole(folder / f"{card.name}.safetensors", lambda opened: opened.write(file.read_bytes()))
    write_json(folder / f"{card.name}.json", card.model_dump(mode="json", exclude_defaults=True))
    return card
