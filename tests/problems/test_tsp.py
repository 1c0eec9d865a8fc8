"""Closed tours: length, form, and which coordinates are refused."""

import numpy as np
import pytest

from neuroute.problems.tsp import canonical, check_coordinates, is_permutation, tour_length

SQUARE = np.array([[0, 0], [0, 1], [1, 1], [1, 0]], dtype=np.float32)


def test_length_is_that_of_the_closed_tour_in_float64():
    length = tour_length(SQUARE, np.array([0, 1, 2, 3], dtype=np.uint8))
    assert length == 4.0
    assert length.dtype == np.float64


def test_length_of_many_tours_and_instances():
    tours = np.array([[0, 1, 2, 3], [0, 2, 1, 3]])
    expected = [4.0, 2 + 2 * np.sqrt(2)]
    np.testing.assert_allclose(tour_length(SQUARE, tours), expected)
    np.testing.assert_allclose(tour_length(np.stack([SQUARE, SQUARE * 2]), tours), np.multiply(expected, [1, 2]))


def test_permutation():
    tours = np.array([[3, 0, 1, 2], [0, 1, 1, 3], [0, 1, 2, 4]], dtype=np.uint8)
    assert is_permutation(tours).tolist() == [True, False, False]


@pytest.mark.parametrize("n", [4, 7])
def test_every_rotation_and_direction_has_one_canonical_form(n):
    tour = np.random.default_rng(n).permutation(n).astype(np.uint8)
    same = np.stack([np.roll(t, k) for t in (tour, tour[::-1]) for k in range(n)])
    forms = canonical(same)
    assert (forms == forms[0]).all()
    assert forms.dtype == np.uint8
    assert forms[0, 0] == 0
    assert forms[0, 1] < forms[0, -1]
    coords = np.random.default_rng(0).random((n, 2))
    np.testing.assert_allclose(tour_length(coords, forms[0]), tour_length(coords, tour), rtol=1e-14)


def test_duplicate_nodes_are_allowed():
    check_coordinates(np.repeat(SQUARE[:2], 2, axis=0), "here")
