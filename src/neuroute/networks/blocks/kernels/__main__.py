"""Compile the kernels that are not there yet, all at once: `python -m neuroute.networks.blocks.kernels`.

Else the first jobs do it, each process for itself.
"""

from concurrent.futures import ThreadPoolExecutor

from neuroute.networks.blocks.kernels import attention, decision, linear, routes
from neuroute.networks.blocks.kernels.library import library


def main() -> None:
    kernels = {"attention": attention, "decision": decision, "linear": linear, "routes": routes}
    with ThreadPoolExecutor() as pool:  # a compiler is a process of its own
        list(pool.map(lambda name: library(name, kernels[name].VERSION), kernels))


if __name__ == "__main__":
    main()
