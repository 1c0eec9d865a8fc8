"""Projections, similarities and the separation of the optimal node."""

import numpy as np
import pytest

from neuroute.analysis.representations import cosine_similarity, principal_components, separation

RNG = np.random.default_rng(0)


def turned(states: np.ndarray) -> np.ndarray:
    """The same states, rotated."""
    q, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(states.shape[-1],) * 2))
    return states @ q


def test_points_in_a_plane_keep_their_distances() -> None:
    flat = RNG.normal(size=(12, 2)) * (3.0, 0.5)
    points, explained = principal_components(turned(np.hstack([flat, np.zeros((12, 3))])))
    between = np.linalg.norm(flat[:, None] - flat[None], axis=-1)
    np.testing.assert_allclose(np.linalg.norm(points[:, None] - points[None], axis=-1), between, atol=1e-12)
    assert explained.sum() == pytest.approx(1)
    assert explained[0] > explained[1]


def test_explained_shares_are_those_of_the_covariance() -> None:
    states = RNG.normal(size=(40, 6)) * (5, 3, 2, 1, 1, 0.1)
    values = np.linalg.eigvalsh(np.cov(states.T))[::-1]
    np.testing.assert_allclose(principal_components(states, 3)[1], values[:3] / values.sum())


def test_the_sign_follows_row_0() -> None:
    states = RNG.normal(size=(9, 5))
    one, other = principal_components(states)[0], principal_components(-states)[0]
    assert (one[0] >= 0).all()
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_equal_states_explain_nothing() -> None:
    points, explained = principal_components(np.ones((4, 3)))
    assert not points.any()
    assert not explained.any()


def test_cosine_of_known_directions() -> None:
    states = np.array([[2.0, 0.0], [0.0, 5.0], [-1.0, 0.0], [0.0, 0.0], [3.0, 3.0]])
    found = cosine_similarity(states)
    np.testing.assert_allclose(found[0], [1, 0, -1, 0, 0.5**0.5], atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    assert not found[3].any()


def test_separation_of_a_known_arrangement() -> None:
    """The others on a circle of radius 2 around (1, 0), the optimal one 10 from its centre."""
    angles = 2 * np.pi * np.arange(5) / 5
    others = np.stack([1 + 2 * np.cos(angles), 2 * np.sin(angles)], axis=1)
    states = np.vstack([[1.0, 10.0], others])
    assert separation(states) == pytest.approx(5)
    both = np.stack([states, 7 * turned(states) + 3])
    np.testing.assert_allclose(separation(both), [5, 5])


def test_separation_is_about_one_when_nothing_is_separated() -> None:
    assert np.mean(separation(RNG.normal(size=(200, 50, 16)))) == pytest.approx(1, abs=0.05)


def test_separation_of_others_that_coincide_is_infinite_and_of_two_nodes_refused() -> None:
    assert separation(np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])) == np.inf
    with pytest.raises(ValueError, match="at least 3 nodes"):
        separation(np.ones((2, 4)))
