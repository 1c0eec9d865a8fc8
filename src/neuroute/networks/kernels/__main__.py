"""Compile the kernels if they are not there yet: `python -m neuroute.networks.kernels`.  Else the first job does it."""

from neuroute.networks.kernels.library import library

if __name__ == "__main__":
    library()
