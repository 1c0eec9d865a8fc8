"""Compile searches on maps, which otherwise happens at their first call: `python -m neuroute_systems.edge_maps`."""

import numpy as np

from neuroute_systems.edge_maps import merging, tree_search

if __name__ == "__main__":
    coords = np.random.default_rng(0).random((4, 2))
    tour = tree_search.solve(coords, 0, actions=1)
    merging.merge(coords, *tree_search.soft_map(coords))
    merging.two_opt(coords, tour, 1)
