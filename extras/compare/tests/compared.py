"""Small sets, fabricated records, and methods that need no process."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from untrained import tsp_text

from neuroute.problems.instances.instance import Instance
from neuroute_compare.methods import Method
from neuroute_compare.records import frame, with_gap
from neuroute_compare.sets import Member, describe

N = (6, 7, 8, 30, 31, 32)


def members() -> list[Member]:
    """Six TSPs, three of them small, with a best cost of 100."""
    points = np.random.default_rng(0).random((40, 2))
    return [Member("mine", f"m{n}", Instance.from_arrays(points[:n], name=f"m{n}"), 100.0) for n in N]


def method(name: str, seconds: float | None = None, kind: Any = "solver", draws: bool = True) -> Method:
    return Method(name, kind, name, ("tsp",), seconds, draws, "1.0")


def records(costs: dict[str, list[float | None]], kinds: dict[str, str] | None = None, seeds: int = 1) -> pd.DataFrame:
    """Records of methods with these costs on the six instances; seconds are as many tenths as the cost has units."""
    rows = []
    for name, each in costs.items():
        for seed in range(seeds):
            for member, cost in zip(members(), each, strict=True):
                time = None if cost is None else cost / 10
                about = {"method": name, "how": "one pass", "kind": (kinds or {}).get(name, "solver"), "seed": seed}
                about |= {"cost": cost, "time_s": time, "seconds": time, "cpu_seconds": time, "clock": "wall"}
                about |= {
                    "unsolved": "" if cost is not None else "time",
                    "limit_s": 60.0,
                    "device": "a CPU",
                    "threads": 1,
                }
                rows.append(with_gap(describe(member) | about))
    return frame(rows)


def tsp_file(path: Path, n: int, seed: int = 0) -> Path:
    """Write a TSPLIB file of n nodes, and a tour beside it, whose length is the best known."""
    points = np.random.default_rng(seed).integers(0, 1000, (n, 2))
    path.write_text(tsp_text(points, name=path.stem))
    nodes = "".join(f"{i}\n" for i in range(1, n + 1))
    path.with_suffix(".tour").write_text(f"NAME: t\nTYPE: TOUR\nDIMENSION: {n}\nTOUR_SECTION\n{nodes}-1\nEOF\n")
    return path
