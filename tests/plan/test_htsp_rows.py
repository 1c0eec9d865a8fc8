"""H-TSP is measured in the tables that print it; at paper scale as published."""

import pytest

from neuroute.papers.icam.roles import SIZES, reference
from neuroute.papers.rivals.scale import rivals
from neuroute.papers.sit import roles as sit
from neuroute.plan.config import Config, load_scale
from neuroute.plan.decodings import name_of
from neuroute.systems.htsp.system import HtspTraining, Proximal
from plans import plan_of


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_rows_read_evaluations(scale: str) -> None:
    plan = plan_of(scale, ("icam", "sit"))
    s, of_sit = plan.scale, (*sit.SMALL_SIZES, *sit.SIZES[:3])
    wanted = {
        "icam/table1": {reference(s, "tsp", n) for n in SIZES},
        "sit/table1": {sit.reference(s, "tsp", n) for n in of_sit if n in sit.SIZES},
        "sit/table9": {sit.small(s, "tsp", n) for n in sit.SMALL_SIZES},
    }
    for artifact, tests in wanted.items():
        read = [plan.evaluations[e] for e in plan.artifacts[artifact].evaluations]
        own = [e for e in read if e.run == "rivals/htsp"]
        assert {name_of(d) for e in own for d in e.decodings_used()} == {"grow"}
        assert {labels for e in own for labels in e.labels} >= tests


def test_as_published() -> None:
    """300 epochs of 100,000 paths, the rate falling after every second; then 2,000 batches of both levels."""
    runs = {each.run.name: each.run for each in rivals(Config(), load_scale("paper"))}
    lower, both = (runs[name].training for name in ("htsp_lower", "htsp"))
    assert isinstance(lower, HtspTraining)
    assert isinstance(both, HtspTraining)
    (paths,), (together,) = lower.stages, both.stages
    assert paths.batches * paths.batch_size == pytest.approx(300 * 100_000, rel=1e-2)
    assert (paths.rate(0), paths.rate(1), paths.sizes) == (1e-3, 0.99e-3, (200, 200))
    assert (both.batches, together.batch_size, both.updates, together.learning_rate) == (2000, 12, 20, 1e-4)
    assert both.upper == Proximal()
    assert {t.weight_decay for t in (lower, both)} == {1e-6}
    assert both.batches_before == lower.batches
    assert runs["htsp"].start == "rivals/htsp_lower"
