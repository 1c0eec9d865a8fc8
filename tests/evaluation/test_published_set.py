"""A model on a published test set: gaps instance by instance against the published solutions."""

from pathlib import Path

import numpy as np
import pytest
from untrained import evaluated, run_of

from neuroute.plan.objects import Dataset, Evaluation, Labels, Network, Test
from neuroute.problems.tsp import tour_length
from neuroute.user.published import import_test_set

N, COUNT = 12, 5


def test_gaps_are_against_the_published_solutions_of_each_instance(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    coords, tours = rng.random((COUNT, N, 2)), np.stack([rng.permutation(N) for _ in range(COUNT)])
    np.savez(tmp_path / "mine.npz", coords=coords, tour=tours, length=tour_length(coords, tours))
    dataset = Dataset(n=N, count=COUNT - 1, file=str(tmp_path / "kept_mine.npz"))  # the first of them
    labels = Labels(dataset=dataset, solver="published")
    import_test_set(labels, tmp_path / "mine.npz", tmp_path)
    shape = {"depth": 1, "width": 8, "heads": 2, "gate": False, "rezero": True, "train_nodes": N}
    run = run_of(Network(kind="neuroute.networks.decoder_only:DecoderOnly", arguments=shape), labels)
    evaluation = Evaluation(run=run.id, group="tests", tests=(Test(labels=labels),))
    records, arrays = evaluated(tmp_path, evaluation, run, label_dirs=[tmp_path])
    own, reference = arrays[f"{dataset.id}|greedy"], arrays[f"{dataset.id}|reference"]
    np.testing.assert_allclose(reference, tour_length(coords, tours)[: COUNT - 1], rtol=1e-6)
    values = records.set_index("metric").value
    assert values["gap_mean_of_ratios_pct"] == pytest.approx(100 * (own / reference - 1).mean())
    assert values["gap_pct"] == pytest.approx(100 * (own.mean() / reference.mean() - 1))
    assert set(records.reference) == {"published"}
    assert set(records.test) == {"kept_mine_c4"}
