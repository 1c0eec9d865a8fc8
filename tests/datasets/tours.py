"""Labels that are quick to make."""

from neuroute.specs.objects import Dataset, Labels


def wanted(count: int, n: int = 10, solver: str = "insertion", **more) -> Labels:
    return Labels(dataset=Dataset(n=n, count=count, **more), solver=solver)
