"""JSON schemas of config.yaml and of the scale files, with the blocks of all known papers: editors read them."""

from typing import Any

from pydantic import create_model

from neuroute.plan.config import Config
from neuroute.plan.papers import all_papers, load_paper
from neuroute.plan.scale import ScaleFile


def schemas() -> dict[str, dict[str, Any]]:
    """Name of each schema -> the schema."""
    blocks: dict[str, Any] = {key: (load_paper(key).scale, None) for key in all_papers()}
    config = Config.model_json_schema()
    config["properties"]["papers"]["items"] = {"type": "string", "examples": all_papers()}
    return {"config": config, "scale": create_model("Scale", __base__=ScaleFile, **blocks).model_json_schema()}
