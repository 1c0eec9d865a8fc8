"""What two models' evaluations say of each other: instances paired, and seeds drawn where there are several."""

from pathlib import Path

import numpy as np
import pytest
from commands import call, done

from neuroute.core.errors import NeurouteError
from neuroute.evaluation.difference import differences, say, table

REFERENCE = np.linspace(4.0, 12.0, 200)
GREEDY = "tsp_uniform_test_n20_c200|greedy"


def evaluated(
    folder: Path, lengths: np.ndarray, reference: np.ndarray = REFERENCE, *, key: str = GREEDY, file: str = "all"
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / f"{file}.npz", **{key: lengths, key.rpartition("|")[0] + "|reference": reference})
    return folder


def test_what_is_added_to_all_instances_is_found_whatever_their_spread(tmp_path: Path) -> None:
    first, second = evaluated(tmp_path / "a", 1.05 * REFERENCE), evaluated(tmp_path / "b", 1.08 * REFERENCE)
    (there,), (back,) = differences([first], [second]), differences([second], [first])
    assert (there.first, there.second, there.ahead) == pytest.approx((5, 8, 3))
    assert (there.interval.low, there.interval.high) == pytest.approx((3, 3))  # lengths spread by a third
    assert (there.verdict, back.verdict) == ("first ahead", "second ahead")
    assert back.ahead == pytest.approx(-3)


def test_noise_is_undecided_and_the_interval_is_that_of_a_paired_test(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(0, 0.5, (2, 200))
    first, second = (evaluated(tmp_path / name, REFERENCE + each) for name, each in zip("ab", noise, strict=True))
    (each,) = differences([first], [second])
    assert each.verdict == "undecided"
    error = 100 * (noise[1] - noise[0]).std() / np.sqrt(200) / REFERENCE.mean()
    assert each.interval.high - each.interval.low == pytest.approx(2 * 1.96 * error, rel=0.15)
    (each,) = differences([first], [evaluated(tmp_path / "c", REFERENCE + noise[0] + 1e-13)])
    assert each.verdict == "undecided"  # the same tours, summed up from another node


def test_seeds_that_differ_widen_the_interval(tmp_path: Path) -> None:
    folders = [evaluated(tmp_path / f"s{i}", (1.05 + 0.02 * i) * REFERENCE) for i in range(3)]
    other = evaluated(tmp_path / "other", 1.08 * REFERENCE)
    (of_one,), (of_all,) = differences(folders[1:2], [other]), differences(folders, [other])
    assert of_one.first == pytest.approx(of_all.first)
    assert of_one.verdict == "first ahead"
    assert of_all.verdict == "undecided"
    assert "seed variance" in say([of_one])[-1]
    assert of_all.trainings == (3, 1)
    assert "seed variance" not in say(differences(folders, [other, other]))[-1]


def test_each_test_set_is_compared_by_the_trainings_that_were_measured_on_it(tmp_path: Path) -> None:
    """Further seeds are often measured on less."""
    folders = [evaluated(tmp_path / f"s{i}", 1.05 * REFERENCE) for i in range(3)]
    other = evaluated(tmp_path / "other", 1.08 * REFERENCE)
    for folder in (folders[0], other):
        evaluated(folder, 1.04 * REFERENCE, key=GREEDY.replace("greedy", "beam16"), file="beam")
    rows = {row.decoding: row for row in differences(folders, [other])}
    assert {name: row.trainings for name, row in rows.items()} == {"greedy": (3, 1), "beam16": (1, 1)}


def test_trainings_compared_with_themselves_are_paired(tmp_path: Path) -> None:
    """By two decodings: how far seeds are apart does not enter."""
    folders = [tmp_path / f"s{i}" for i in range(3)]
    for folder, gap in zip(folders, (0.05, 0.10, 0.15), strict=True):
        evaluated(folder, (1 + gap + 0.02) * REFERENCE)
        evaluated(folder, (1 + gap) * REFERENCE, key=GREEDY.replace("greedy", "beam16"), file="beam")
    (row,) = differences(folders, folders, ("beam16", "greedy"))
    assert (row.interval.low, row.interval.high) == pytest.approx((2, 2))


def test_of_several_test_sets_the_mean_pairs_each_seed_with_itself(tmp_path: Path) -> None:
    """A seed that is lucky on one set and unlucky on another tells nothing of the mean."""
    keys = [f"vrp_{variant}_test_n20_c200|multistart" for variant in ("OVRP", "VRPB", "CVRP")]
    folders = [tmp_path / name for name in ("s0", "s1", "s2", "other")]
    luck = {"s0": (0.05, 0.01), "s1": (0.01, 0.05), "s2": (0.03, 0.03), "other": (0.08, 0.08)}
    for folder in folders:
        for part, (key, gap) in enumerate(zip(keys, (*luck[folder.name], 0.5), strict=True)):
            evaluated(folder, (1 + gap) * REFERENCE, key=key, file=str(part))
    *each, mean = differences(folders[:3], folders[3:], mean_of="vrp_O*,vrp_VRPB*")
    assert (mean.test, mean.instances) == ("mean of 2: vrp_O*,vrp_VRPB*", 400)
    assert (mean.first, mean.second) == pytest.approx((3, 8))
    assert (mean.interval.low, mean.interval.high) == pytest.approx((5, 5))
    assert [row.verdict for row in each[:2]] == ["undecided", "undecided"]  # by Student's t of three seeds
    with pytest.raises(NeurouteError, match="fewer than two"):
        differences(folders[:1], folders[3:], mean_of="vrp_C*")
    (folders[0] / "0.npz").unlink()
    with pytest.raises(NeurouteError, match="not all test sets were measured with all seeds"):
        differences(folders[:3], folders[3:], mean_of="vrp_*")


def test_a_single_instance_decides_nothing(tmp_path: Path) -> None:
    first, second = (evaluated(tmp_path / name, np.array([x]), np.array([4.0])) for name, x in (("a", 5.0), ("b", 9.0)))
    (each,) = differences([first], [second])
    assert each.verdict == "undecided"
    assert "one instance" in "\n".join(say([each]))


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    first = evaluated(tmp_path / "a", REFERENCE)
    with pytest.raises(NeurouteError, match="other instances"):
        differences([first], [evaluated(tmp_path / "moved", REFERENCE, 1.1 * REFERENCE)])
    with pytest.raises(NeurouteError, match="common test set"):
        differences([first], [evaluated(tmp_path / "beam", REFERENCE, key=GREEDY.replace("greedy", "beam16"))])
    with pytest.raises(NeurouteError, match="no evaluations"):
        differences([first], [tmp_path / "none"])
    (tmp_path / "b").mkdir()
    whole = (first / "all.npz").read_bytes()
    for broken in (b"no npz", whole[: len(whole) // 2]):
        (tmp_path / "b" / "all.npz").write_bytes(broken)
        with pytest.raises(NeurouteError, match=r"b/all\.npz: not a readable npz"):
            differences([first], [tmp_path / "b"])


def test_the_command_prints_and_writes_what_differs(tmp_path: Path) -> None:
    first, second = evaluated(tmp_path / "a", 1.05 * REFERENCE), evaluated(tmp_path / "b", 1.08 * REFERENCE)
    out = tmp_path / "differences.csv"
    assert "3.00 [3.00, 3.00]" in done("difference", first, f"{second},{second}", "--out", out)
    rows = table(differences([first], [second]), str(first), f"{second},{second}")
    assert out.read_text() == rows.to_csv(index=False)


def test_models_that_build_solutions_in_other_ways_are_compared_when_asked_to(tmp_path: Path) -> None:
    first = evaluated(tmp_path / "a", 1.05 * REFERENCE, key=GREEDY.replace("greedy", "multistart"))
    second = evaluated(tmp_path / "b", 1.08 * REFERENCE)
    (each,) = differences([first], [second], ("multistart", "greedy"))
    assert each.decoding == "multistart and greedy"
    assert each.ahead == pytest.approx(3)
    with pytest.raises(NeurouteError, match="by greedy and multistart"):
        differences([first], [second], ("greedy", "multistart"))
    assert call("difference", first, second, "--decodings", "multistart")[0] == 2


@pytest.mark.parametrize("group", ["", "cvrplib/"])  # by itself, or measured together with others
def test_of_a_benchmark_gaps_are_means_over_instances(tmp_path: Path, group: str) -> None:
    optima = np.array([10.0, 1000.0, 50.0])
    for name, gaps in (("a", [5, 10, 3]), ("b", [6, 11, 4])):
        (tmp_path / name).mkdir()
        own = {"names": ["A-n3", "A-n4", "A-n5"], "optima": optima, "greedy": optima * (1 + np.array(gaps) / 100)}
        np.savez(tmp_path / name / f"lib_{name}.npz", **{f"{group}{key}": each for key, each in own.items()})
    (each,) = differences([tmp_path / "a"], [tmp_path / "b"])
    assert (each.test, each.instances) == ("3 instances, A-n3 to A-n5", 3)
    assert (each.first, each.second) == pytest.approx((6, 7))
    assert (each.interval.low, each.interval.high) == pytest.approx((1, 1))

    (tmp_path / "c").mkdir()  # the same names at both ends, other instances
    np.savez(tmp_path / "c" / "lib.npz", names=["A-n3", "A-n9", "A-n5"], optima=2 * optima, greedy=2 * optima)
    with pytest.raises(NeurouteError, match="other instances"):
        differences([tmp_path / "a"], [tmp_path / "c"])
