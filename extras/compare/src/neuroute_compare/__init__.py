"""One protocol for all: networks, solvers and other people's results on the same public instances."""
