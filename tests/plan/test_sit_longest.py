"""l_max of a training that its instances cannot have: refused with the run's name, before anything runs."""

import re
from pathlib import Path

import pytest

from neuroute.core.errors import NeurouteError
from neuroute.papers.sit.paper import PAPER
from neuroute.plan.config import load_scale, parse_config

SCALE = load_scale(str(Path(__file__).parents[1] / "data" / "micro.yaml"))


@pytest.mark.parametrize("run", ["sit/tsp_1k", "sit/cvrp_1k", "sit/warm_tsp"])
def test_longest_above_the_nodes_names_the_run(run: str) -> None:
    config = parse_config({"runs": {run: {"training": {"longest": 500}}}})
    with pytest.raises(NeurouteError, match=re.escape(f"{run}, training.longest: sub-paths of at most 500 of ")):
        PAPER.runs(config, SCALE)
