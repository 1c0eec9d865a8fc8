"""What holds of every drawing of a network at work (icam, mvmoe, sit): it says what it shows, and what it lacks."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fabricated_icam_figures as icam
import fabricated_mvmoe_figures as mvmoe
import fabricated_pens as pens
import fabricated_scaling as scaling
import fabricated_sit_figures as sit
from fabricated import with_arrays
from figure_checks import drawn_figure, laid_out, written_twice
from neuroute.core.errors import NeurouteError
from neuroute.specs.objects import FIGURE_FORMATS

pytestmark = pytest.mark.slow

PAPERS = {"icam": icam, "mvmoe": mvmoe, "pens": pens.FABRIC, "scaling": scaling.FABRIC, "sit": sit}
READ = {  # figure -> the evaluation that it is drawn from
    **{("icam", f"figure{i}"): f"{icam.POMO if i == 6 else icam.ICAM}/structure" for i in range(1, 7)},
    **{("mvmoe", f"figure{i}"): f"{mvmoe.LIGHT if i in (4, 8) else mvmoe.BASE}/routing" for i in (1, 2, 3, 4, 8, 9)},
}
LACKING = {  # figure -> an array without which it cannot be drawn
    "icam": {1: "sizes", 2: "layer_alphas", 3: "bias", 5: "numerator", 6: "attention"},
    "mvmoe": {1: "order_VRPL", 2: "probabilities", 3: "expert_nodes", 4: "gate", 8: "sparse", 9: "decoder_load"},
}
DATA = ("coords", "levels", "lengths", "log_n", "clipping")  # of ICAM; all else is computed
LEARNT = ("scores", "weights", "logits", "probabilities", "known", "gate", "gate_scores", "sparse_chance", "step_load",
          "encoder_load", "decoder_load")  # fmt: skip
Folder = Callable[[str], Path]


@pytest.fixture(scope="module")
def folder(records_of: Callable[[Callable[[Path], Path]], Path]) -> Folder:
    return lambda paper: records_of(getattr(PAPERS[paper], "fabricate", PAPERS[paper]))


@pytest.mark.parametrize(
    ("paper", "name"),
    [("icam", "figure3"), ("mvmoe", "figure2"), ("pens", "figure2"), ("scaling", "figure2"), ("sit", "figure1")],
)
def test_every_format_is_written_and_comes_out_the_same(paper: str, name: str, folder: Folder, tmp_path: Path) -> None:
    written = written_twice(PAPERS[paper].study, name, folder(paper), tmp_path, FIGURE_FORMATS)
    assert all(path.stat().st_size > 200 for path in written)


@pytest.mark.parametrize(
    ("paper", "name"),
    [
        *READ,
        *(("mvmoe", f"figure{i}") for i in (5, 6, 7)),
        *(("pens", f"figure{i}") for i in (2, 6)),
        *(("sit", f"figure{i}") for i in (1, 2, 3)),
    ],
)
def test_it_says_what_it_shows_and_is_laid_out(paper: str, name: str, folder: Folder) -> None:
    drawing = drawn_figure(PAPERS[paper].study, name, folder(paper))
    laid_out(drawing)
    assert drawing.alt
    told = [note for note in drawing.notes if "print" in note or "paper p" in note]  # prints, plots: what it is beside
    assert told or paper == "pens"
    if paper == "icam":
        assert drawing.notes[-1].endswith(("and no numbers.", "prints no numbers."))
        assert any(READ[paper, name].removesuffix("/structure") in note for note in drawing.notes)


@pytest.mark.parametrize(("paper", "name"), READ)
def test_without_the_evaluation_there_is_one_clear_error(paper: str, name: str, folder: Folder, tmp_path: Path) -> None:
    without = with_arrays(folder(paper), tmp_path, READ[paper, name], lambda a: a.clear())
    with pytest.raises(NeurouteError, match=rf"{READ[paper, name]} names no modules; evaluate it again"):
        drawn_figure(PAPERS[paper].study, name, without)


@pytest.mark.parametrize(
    ("paper", "number", "lacking"), [(p, number, array) for p, of in LACKING.items() for number, array in of.items()]
)
def test_a_missing_array_is_named(paper: str, number: int, lacking: str, folder: Folder, tmp_path: Path) -> None:
    name = f"figure{number}"
    without = with_arrays(folder(paper), tmp_path, READ[paper, name], lambda a: a.pop(lacking))
    with pytest.raises(NeurouteError, match=f"no array {lacking}; evaluate it again"):
        drawn_figure(PAPERS[paper].study, name, without)


@pytest.mark.parametrize(("paper", "name"), [figure for figure in READ if figure[1] != "figure1"])
def test_what_is_not_finite_is_drawn_nonetheless(paper: str, name: str, folder: Folder, tmp_path: Path) -> None:
    """Of a network whose training went astray: nothing that it computes is a number."""

    def broken(a: dict[str, np.ndarray]) -> None:
        for key, value in a.items():
            computed = not key.startswith(DATA) if paper == "icam" else key.endswith(LEARNT)
            if value.dtype.kind == "f" and computed:
                a[key] = np.full_like(value, np.nan)

    folder_here = with_arrays(folder(paper), tmp_path, READ[paper, name], broken)
    laid_out(drawn_figure(PAPERS[paper].study, name, folder_here))
