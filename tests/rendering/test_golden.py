"""Every table and figure is drawn as before, from fabricated records.

`golden.csv` has a digest of each file; `pytest tests/rendering/test_golden.py --renew-golden` renews it.
"""

import csv
import hashlib
import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from neuroute.core.device import name as name_of_device
from neuroute.pipeline.rendering.render import render
from neuroute.specs.objects import formats

GOLDEN = Path(__file__).with_name("golden.csv")
TEXTS = ("csv", "md", "tex", "html", "json")
PAPERS = ("icam", "mvmoe", "pens", "scaling", "sit")
OWN_RECORDS = {"icam", "mvmoe", "sit"}  # whose figures have records of their own
LIVE = {("icam", f"figure{k}") for k in range(1, 7)} | {("mvmoe", f"figure{k}") for k in (1, 2, 3, 4, 8, 9)}
LIVE |= {("scaling", "figure4")}  # principal components
NUMBER = re.compile(r"(?<![\w#.])[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")


def rounded(text: str, live: bool) -> str:
    """The text with numbers to four digits, as processors and libraries round the last ones each in their way.

    `live`: of what a network or LAPACK computes here; numbers are left out.  Which build of torch it is, and which
    processor, always is.
    """
    for here, golden in ((torch.__version__, "2.13.0+cpu"), (name_of_device(torch.device("cpu")), "AMD EPYC")):
        text = text.replace(f'"{here}"', f'"{golden}"')

    def short(number: re.Match[str]) -> str:
        value = float(number[0].replace(",", "").replace("−", "-"))
        return "0" if abs(value) < 1e-9 else f"{value:.4g}"

    return NUMBER.sub("0" if live else short, text)


def drawn(path: Path) -> str:
    """What a file shows: without the commit that drew it, and the files that it was drawn from."""
    if path.suffix != ".json":
        return path.read_text()
    about = json.loads(path.read_text())
    about.pop("made_from")
    return json.dumps(about, indent=1, sort_keys=True) + "\n"


def digests(paper: str, records_of: Callable[[Any], Path], folder: Path) -> dict[str, dict[str, str]]:
    """Draw all of a paper into the folder; artifact -> format -> digest."""
    found: dict[str, dict[str, str]] = {}
    of_tables = importlib.import_module(f"fabricated_{paper}")
    of_figures = importlib.import_module(f"fabricated_{paper}_figures") if paper in OWN_RECORDS else of_tables
    for name, artifact in of_tables.FABRIC.artifacts.items():
        if artifact.kind == "table" or paper not in OWN_RECORDS:
            study = of_tables.FABRIC.study(name, records_of(of_tables.FABRIC))
        else:
            study = of_figures.study(name, records_of(of_figures.fabricate))
        render(study, folder / paper / name)
        found[f"{paper}/{name}"] = {
            kind: hashlib.sha256(
                rounded(drawn(folder / paper / f"{name}.{kind}"), (paper, name) in LIVE).encode()
            ).hexdigest()[:10]
            for kind in TEXTS
            if kind in {*formats(artifact.kind), "json"}
        }
    return found


@pytest.mark.parametrize("paper", [pytest.param(p, marks=[pytest.mark.slow] * (p == "scaling")) for p in PAPERS])
def test_nothing_that_is_drawn_has_changed(
    paper: str, records_of: Callable[[Any], Path], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    now = digests(paper, records_of, tmp_path)
    with GOLDEN.open(newline="") as file:
        golden = {row.pop("artifact"): {k: v for k, v in row.items() if v} for row in csv.DictReader(file)}
    before = {name: kinds for name, kinds in golden.items() if name.startswith(f"{paper}/")}
    if request.config.getoption("--renew-golden"):
        kept = {name: kinds for name, kinds in golden.items() if name not in before}
        with GOLDEN.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["artifact", *TEXTS], lineterminator="\n")
            writer.writeheader()
            writer.writerows({"artifact": name} | kinds for name, kinds in sorted((kept | now).items()))
        return
    changed = [f"{name}: {kind}" for name in {**before, **now} for kind in TEXTS
               if before.get(name, {}).get(kind) != now.get(name, {}).get(kind)]  # fmt: skip
    assert not changed, f"other than golden.csv has them: {changed}; as they are now: {tmp_path / paper}"
