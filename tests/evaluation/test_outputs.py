"""Where results go is looked at before anything is computed, and nothing of the user's is overwritten."""

import os
from pathlib import Path

import numpy as np
import pytest
from untrained import done, refused, tsp_text, untrained

from neuroute.api import evaluate as user
from neuroute.api import solve
from neuroute.core.errors import NeurouteError
from neuroute.core.files import check_writable
from neuroute.evaluation.loaded import check_records
from neuroute.specs.objects import Network

COORDS = np.random.default_rng(0).random((2, 9, 2))
TSP = tsp_text([(0, 0), (5, 1), (9, 0), (10, 8), (4, 9)])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    arguments = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 32, "train_nodes": 20}
    return untrained(
        tmp_path / "m.safetensors", Network(kind="neuroute.networks.sit:Sit", arguments=arguments), "sit/x"
    )


def test_what_can_be_written_leaves_no_trace(tmp_path: Path) -> None:
    check_writable("--save", tmp_path / "new" / "a.sol")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NeurouteError, match=f"there is no folder {tmp_path / 'new'}; make it"):
        check_writable("--save", tmp_path / "new" / "deep" / "a.sol")
    (tmp_path / "a.sol").write_text("kept")
    check_writable("--save", tmp_path / "a.sol")
    assert (tmp_path / "a.sol").read_text() == "kept"


def no_place(tmp_path: Path, suffix: str) -> dict[str, str]:
    """Places of no file, and what is said of them."""
    (tmp_path / "file").write_text("")
    (tmp_path / f"folder{suffix}").mkdir()
    return {
        str(tmp_path / "file" / f"a{suffix}"): "file cannot be a folder; choose another place",
        str(tmp_path / f"folder{suffix}"): "is a folder; give the name of a file",
        str(tmp_path / f"{'a' * 300}{suffix}"): "cannot be written (File name too long)",
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(NeurouteError, match="cannot be written .Permission denied.; choose another place"):
        check_writable("--save", tmp_path / "closed" / "a.sol")


@pytest.mark.parametrize(
    ("command", "option", "ending"),
    [("solve", "--out", ".svg"), ("solve", "--save", ".tour"), ("evaluate", "--out", ".csv")],
)
def test_nothing_is_computed_in_vain(
    tmp_path: Path, model: Path, command: str, option: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.tsp").write_text(TSP)
    for module, begin in ((solve, "solve_by_model"), (user, "decode_timed")):
        monkeypatch.setattr(module, begin, lambda *_, **__: pytest.fail("it has begun to solve"))
    given = (command, *(("--data",) if command == "evaluate" else ()), tmp_path / "t.tsp", "--model", model)
    drawing = ("--out", tmp_path / "t.svg") if option == "--save" else ()
    for place, why in no_place(tmp_path, ending).items():
        said = refused(*given, option, place, *drawing)
        assert why in said
        assert said.startswith(f"error: {option} ")
    assert not (tmp_path / "t.svg").exists()
    assert not (tmp_path / "folder.npz").exists()


def test_records_do_not_overwrite_the_instances_beside_them(tmp_path: Path, model: Path) -> None:
    data = tmp_path / "mine.npz"
    np.savez(data, coords=COORDS)
    before = data.read_bytes()
    said = refused("evaluate", "--model", model, "--data", data, "--out", tmp_path / "mine.csv")
    assert "mine.npz, which is another file; choose another name" in said
    assert data.read_bytes() == before
    assert not (tmp_path / "mine.csv").exists()


def test_a_table_of_the_user_s_is_not_overwritten(tmp_path: Path, model: Path) -> None:
    data = tmp_path / "cities.csv"
    data.write_text("x,y\n" + "\n".join(f"{x},{y}" for x, y in COORDS[0].tolist()))
    before = data.read_bytes()
    said = refused("evaluate", "--model", model, "--data", data, "--out", data)
    assert "cities.csv: is there, and holds no records; choose another name" in said
    assert data.read_bytes() == before


def test_records_may_be_written_again(tmp_path: Path, model: Path) -> None:
    np.savez(tmp_path / "d.npz", coords=COORDS)
    out = tmp_path / "records.csv"
    for _ in range(2):
        done("evaluate", "--model", model, "--data", tmp_path / "d.npz", "--out", out)
    assert out.exists()
    out.with_suffix(".npz").write_bytes(b"no npz")
    with pytest.raises(NeurouteError, match="which is another file"):
        check_records("--out", out)
