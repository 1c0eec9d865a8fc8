"""Solvers of this package by name."""

SOLVERS = {"softdist": "neuroute_systems.edge_maps.tree_search:SOLVER"}
