"""Figures 1 to 6 of paper `icam` on the structure of tiny untrained networks: drawn is what was measured."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fabricated import stored, with_arrays
from fabricated_icam_figures import DECISION, ICAM, POMO, SHAPE, SIZES, fabricate, small, study
from neuroute.pipeline.papers.icam.figures import CHANNELS, NODES
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.maps import draw_matrix, format_range, short
from neuroute.specs.objects import Run
from shown import drawn_figure, texts

RECORDS = fabricate
draw = partial(drawn_figure, study)

Arrays = dict[str, np.ndarray]
ICAM_NET, POMO_NET = f"{ICAM}/structure", f"{POMO}/structure"


def parameters(run: Run) -> int:
    return sum(p.numel() for p in small(run).parameters())


def test_figure1_shows_the_regions(work: Path) -> None:
    drawing, a = draw("figure1", work), stored(work, ICAM_NET)
    points, told = drawing.points, " ".join(texts(drawing))
    for n, count in SIZES.items():
        radius = float(a[f"radius_{n}_optimal"])
        assert f"{n} nodes: radius {radius:.3f}" in told
        assert f"{count} of TSP{n} by insertion" in drawing.notes[0]
        nodes = points[(points.n == n) & points.node.notna()]
        assert len(nodes) == n
        (current,) = nodes[nodes.place == "current"][["x", "y"]].to_numpy()
        near = np.linalg.norm(nodes[["x", "y"]] - current, axis=1) <= radius
        assert set(nodes.place[near]) == {"current", "within"}
        assert set(nodes.place[~near]) == {"other"}
        assert sorted(nodes.stop) == list(range(n))
        for who in ("optimal", "model"):
            own = points[(points.n == n) & (points.chooser == who)]
            np.testing.assert_allclose(own[own.panel == "b"].distance, a[f"quantiles_{n}_{who}"])
            np.testing.assert_array_equal(own[own.panel == "c"].decisions, a[f"ranks_{n}_{who}"])
    ratio = float(a["radius_60_optimal"] / a["radius_20_optimal"])
    assert (
        f"by a factor of {ratio:.2f}; (n1/n2)^0.5, which keeps the number of nodes inside, is 0.58" in drawing.notes[3]
    )


def test_figure2_has_the_learnt_alphas_and_the_bias(work: Path) -> None:
    drawing, a = draw("figure2", work), stored(work, ICAM_NET)
    points = drawing.points
    alphas = dict(points[points.panel == "c"][["where", "alpha"]].to_numpy())
    assert list(alphas) == ["layer 1", "layer 2", "layer 3", "decoder", "compatibility"]
    assert alphas["decoder"] == float(a["decoder_alpha"])
    assert alphas["layer 2"] == a["layer_alphas"][1]
    for n in SIZES:
        own = points[points.n == n]
        assert len(own) == n
        np.testing.assert_allclose(own.bias, -alphas["decoder"] * np.log2(n) * own.distance, rtol=1e-12)
        assert (own.distance == 0).sum() == 1


def test_figure2_says_when_far_nodes_do_not_fade(work: Path, tmp_path: Path) -> None:
    def negative(a: Arrays) -> None:
        a["decoder_alpha"] = np.array(-0.2)

    assert "far nodes do not fade" in draw("figure2", with_arrays(work, tmp_path, ICAM_NET, negative)).notes[0]
    assert "halves every" in draw("figure2", work).notes[0]


def test_figure3_is_the_live_network(work: Path) -> None:
    drawing, a, run = draw("figure3", work), stored(work, ICAM_NET), study("figure3", work).runs[ICAM]
    told, w, f = texts(drawing), SHAPE["width"], SHAPE["feed_forward"]
    assert f"ICAM, {parameters(run):,} parameters" in told
    layer = 3 * w * w + 2 * w * f + 5 * w + f + 1
    assert f"{SHAPE['depth']} layers alike, {layer:,} parameters each" in told
    for text in (f"{w} × 2", f"q, k, v {3 * w} × {w}", f"{f} × {w}", f"{w} × {f}", f"k, v {2 * w} × {w}"):
        assert text in told
    assert f"α = {short(float(a['decoder_alpha']))}" in told
    assert "50 tanh(· + A)" in told
    points = drawing.points[drawing.points.panel == "decision"]
    np.testing.assert_allclose(points.probabilities, a["probabilities"], rtol=1e-6)
    np.testing.assert_allclose(50 * np.tanh(points.fits + points.bias)[points.logits.notna()],
                               points.logits.dropna(), rtol=1e-3, atol=1e-3)  # fmt: skip
    assert sorted(points.stop.dropna()) == list(range(DECISION))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_figure3_tells_whether_the_bias_turned_the_choice(sign: float, work: Path, tmp_path: Path) -> None:
    def turned(a: Arrays) -> None:
        a["fits"] = sign * np.nan_to_num(a["logits"], nan=-60)

    note = draw("figure3", with_arrays(work, tmp_path, ICAM_NET, turned)).notes[2]
    assert ("also prefer the chosen node" if sign > 0 else "prefer another node than the chosen one") in note


def test_figure5_is_equation_3_on_real_numbers(work: Path) -> None:
    drawing = draw("figure5", work)
    parts = {
        name: part.pivot_table(index="node", columns="column", values="value").to_numpy()
        for name, part in drawing.points.groupby("matrix")
    }
    assert len(parts) == 12
    assert parts["query"].shape == (NODES, min(CHANNELS, SHAPE["width"]))
    assert parts["adaptation"].shape == (NODES, NODES)
    np.testing.assert_allclose(np.exp(parts["adaptation"]), parts["exp_adaptation"])
    np.testing.assert_allclose(parts["exp_key"] * parts["value"], parts["weighed_value"])
    np.testing.assert_allclose(parts["numerator"] / parts["denominator"], parts["ratio"])
    np.testing.assert_allclose(parts["sigmoid_query"] * parts["ratio"], parts["output"], rtol=1e-4, atol=1e-6)
    (difference,) = re.findall(r"from it by at most (\S+)\.", drawing.notes[2])
    assert float(difference) < 1e-5


def test_figure6_shows_tours_and_attention(work: Path) -> None:
    drawing, a, run = draw("figure6", work), stored(work, POMO_NET), study("figure6", work).runs[POMO]
    told, points = texts(drawing), drawing.points
    assert f"(a) POMO, {parameters(run):,} parameters" in told
    assert "4 heads of 4" in told
    assert f"best: {a['lengths'].min():.3f}" in told
    np.testing.assert_allclose(points[points.panel == "d"].length, a["lengths"])
    tours = points[points.panel == "c"]
    assert sorted(a["lengths"][tours.start.unique().astype(int)]) == pytest.approx(
        np.quantile(a["lengths"], [0, 0.5, 1], method="nearest"), rel=0.05
    )
    for start in tours.start.unique().astype(int):
        np.testing.assert_array_equal(tours.node[tours.start == start], a["tours"][start])
    looks = points[points.panel == "b"].pivot_table(index="head", columns="node", values="weight").to_numpy()
    np.testing.assert_allclose(looks, a["attention"])


# -- small things ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (-0.0, "0"), (-0.5, "−0.5"), (12.34, "12.3"), (1234.4, "1234"), (5e-4, "5.0e−04")]
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert short(value) == text


def test_the_range_of_a_matrix_skips_what_is_not_finite() -> None:
    assert format_range(np.array([1.0, np.nan, -2.0, -np.inf])) == "−2 … 1"
    assert format_range(np.array([np.nan])) == "not finite"


@pytest.mark.parametrize(
    ("values", "palette"),
    [([[-1.0, 2.0]], "RdBu_r"), ([[1.0, 2.0]], "Blues"), ([[-3.0, 0.0]], "Oranges_r"), ([[0.0, 0.0]], "Oranges_r")],
)
def test_colours_follow_the_signs(values: list[list[float]], palette: str) -> None:
    axes = style.new_figure(1, 1).subplots()
    draw_matrix(axes, np.array(values))
    assert axes.images[0].get_cmap().name.startswith(palette)
