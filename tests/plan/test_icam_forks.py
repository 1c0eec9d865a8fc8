"""The third stages of icam's Table 10 are on the batches of the main run's, whatever config.yaml changes of that."""

from typing import Any

import pytest

from neuroute.plan.build import build_plan
from neuroute.plan.config import parse_config
from neuroute.plan.objects import Run

FORK = "icam/k20_b0.5"


def runs(changes: dict[str, Any]) -> dict[str, Run]:
    return dict(build_plan(parse_config({"papers": ["icam"], "runs": changes})).runs)


@pytest.mark.parametrize("seed", [0, 7])
def test_a_fork_draws_as_the_main_run_does(seed: int) -> None:
    found = runs({"icam/icam_tsp": {"seed": seed}})
    assert found[FORK].seed == found["icam/icam_tsp"].seed == seed
    assert found["icam/abl_afm"].seed == found["icam/pomo_tsp"].seed == 0


def test_unless_it_is_given_a_seed_of_its_own() -> None:
    found = runs({"icam/icam_tsp": {"seed": 7}, FORK: {"seed": 3}})
    assert found[FORK].seed == 3
