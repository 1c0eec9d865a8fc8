"""Put the trained networks among those that come with the package, each with a card of what the DAG measured.

snakemake --config scale=zoo --cores all all
python tools/pack_zoo.py

snakemake --config scale=laptop --cores all results/table12.csv
python tools/pack_zoo.py --grid laptop    # the first seed of the papers' grid, to measure Table 12 again
"""

import datetime
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from neuroute.api import zoo
from neuroute.api.model import load_model
from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, write_json, write_whole
from neuroute.core.yaml_files import validate
from neuroute.networks.weights import describe, parameters
from neuroute.pipeline.papers.zoo.paper import CVRP, IMAGES, KEY, STARTS, TSP, VARIANTS, VRP, ZooScale
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import load_config
from neuroute.pipeline.plan.plan import Plan
from neuroute.specs.objects import Decoding, Network, Reinforced, Run

NODES = {TSP: (4, 1000), CVRP: (4, 1000), VRP: (4, 200)}  # for which a network is recommended
SHORT = {TSP: 50, CVRP: 30}
SEARCH = {run: Decoding(method="prc", longest=stops) for run, stops in SHORT.items()} | {
    VRP: Decoding()
}  # how it improves solutions
TABLES = {TSP: ("TSP", "table1"), CVRP: ("CVRP", "table2")}


def pack(plan: Plan, names: Iterable[str] = ()) -> list[zoo.Card]:
    """Ship the networks of these runs; none named: of all.  Raises NeurouteError if a run or a table is missing."""
    ids = [f"{KEY}/{name}" for name in names] or list(NODES)
    runs = [plan.find(plan.runs, run, "run") for run in ids]
    cards = []
    for run in runs:
        gaps = _of_variants(plan) if run.id == VRP else [*_of_sizes(plan, run.id), *_of_library(plan, run.id)]
        facts = {"name": run.name, "variants": list(VARIANTS) if run.id == VRP else None, "nodes": NODES[run.id]}
        more = facts | {"decoding": SEARCH[run.id].model_dump(mode="json"), "gaps": gaps}
        cards.append(ship(plan.run_dir(run.id) / "model.safetensors", about(plan, run) | more))
    return cards


def pack_grid(plan: Plan) -> list[zoo.Card]:
    """Ship the grid's first seed, as far as it is trained and measured, each with the gap of its greedy solutions."""
    cards = []
    for run in (run for name, run in plan.runs.items() if re.fullmatch(r"scaling/base_\d+x\d+", name)):
        records = plan.evaluation_file(f"{run.id}/greedy")
        if records.is_file():
            table = pd.read_csv(records).query("metric == 'gap_pct' and decoding == 'greedy'")
            columns = {"test": "set", "decoding": "decoding", "n_instances": "instances", "value": "gap"}
            gaps = table.rename(columns=columns)[[*columns.values(), "reference"]].to_dict(orient="records")
            facts = {"name": run.id, "nodes": (run.n, 10 * run.n), "gaps": gaps}
            cards.append(ship(plan.run_dir(run.id) / "model.safetensors", about(plan, run) | facts))
    return cards


def ship(file: Path, about: dict[str, Any], folder: Path | None = None) -> zoo.Card:
    """Put a trained checkpoint among the shipped networks, with its card.

    Args:
        file: the checkpoint.
        about: what the card says beyond what the checkpoint does: name, trained_on, steps, ..., nodes, decoding, gaps.
        folder: where to; None: the package's.

    Raises:
        NeurouteError: if the card lacks something, or the checkpoint is of other code.
    """
    folder = zoo.FOLDER if folder is None else folder
    model = load_model(file, "cpu")
    facts = {
        "problem": model.problem,
        "run": model.about["run"],
        "network": describe(Network.model_validate(model.about["network"])),
        "parameters": parameters(model.net),
        "sha256": zoo.sha256(file),
        "decision": zoo.decision(model.net),
    }
    card = validate(zoo.Card, facts | about, f"{file}: model card")
    write_whole(folder / f"{card.name}.safetensors", lambda opened: opened.write(file.read_bytes()))
    write_json(folder / f"{card.name}.json", card.model_dump(mode="json", exclude_defaults=True))
    return card


def about(plan: Plan, run: Run) -> dict[str, Any]:
    """What a card says beyond what the checkpoint does."""
    summary = read_json(plan.run_dir(run.id) / "run.json", f"train {run.id}")
    t = run.training
    return {
        "trained_on": _trained_on(run, summary["samples"]),
        "steps": summary["updates"],
        "epochs": t.epochs,
        "seed": run.seed,
        "commit": summary["source"]["commit"][:8],
        "date": datetime.date.today().isoformat(),
        "device": f"{summary['device_name']}, {summary['threads']} threads",
        "seconds": summary["wall_time_s"],
        "trained_nodes": _trained_nodes(run),
    }


def _trained_on(run: Run, samples: int) -> str:
    if isinstance(run.training, Reinforced):
        low, high = _trained_nodes(run)
        stops = "nodes" if run.id == TSP else "customers"
        return f"{samples:,} instances of {low} to {high} {stops}, by REINFORCE"
    return f"{run.training.samples:,} solutions of {run.n} nodes by {run.data[0].solver}"


def _trained_nodes(run: Run) -> tuple[int, int]:
    """The least and the most nodes, or customers, of what it is trained on."""
    t = run.training
    sizes = [size for stage in t.stages for size in stage.sizes] if isinstance(t, Reinforced) else [run.n]
    return min(sizes), max(sizes)


def _of_sizes(plan: Plan, run: str) -> list[dict[str, Any]]:
    problem, table = TABLES[run]
    block = plan.scale[ZooScale].tsp if run == TSP else plan.scale[ZooScale].cvrp
    out = []
    for row in _rows(plan, table):
        for n, count in block.test_counts.items():
            gap = _interval(row, f"gap_{n}_pct")
            gap |= {"set": f"{problem}{n}", "decoding": row["decoding"], "instances": count}
            out.append(gap | {"reference": block.reference, "seconds": count * row[f"time_{n}_s_measured"]})
    return out


def _of_library(plan: Plan, run: str) -> list[dict[str, Any]]:
    name = "TSPLIB" if run == TSP else "CVRPLIB"
    below = plan.scale[ZooScale].largest_benchmark
    return [
        {
            "set": f"{name} below {below} nodes",
            "decoding": row["decoding"],
            "instances": row["instances"],
            "gap": row["gap_pct_measured"],
            "reference": "best known",
            "seconds": row["instances"] * row["time_s_measured"],
        }
        for row in _rows(plan, "table4")
        if row["library"] == name and "gap_pct_measured" in row  # not without the library
    ]


def _of_variants(plan: Plan) -> list[dict[str, Any]]:
    v = plan.scale[ZooScale].vrp
    return [
        _interval(row, key)
        | {"set": f"{row['problem']}{v.nodes}", "decoding": decoding.name, "instances": v.test_count}
        | {"reference": row["reference"]}
        for row in _rows(plan, "table3")
        for key, decoding in (("gap_pct", STARTS), ("gap_x8_pct", IMAGES))
    ]


def _interval(row: dict[str, Any], key: str) -> dict[str, Any]:
    """A measured value with its bounds, where it has some."""
    names = {"gap": "measured", "low": "measured_low", "high": "measured_high"}
    return {name: row[f"{key}_{end}"] for name, end in names.items() if f"{key}_{end}" in row}


def _rows(plan: Plan, name: str) -> list[dict[str, Any]]:
    file = plan.artifact_stem(f"{KEY}/{name}").with_suffix(".csv")
    if not file.is_file():
        raise NeurouteError(f"{file} is missing; run `snakemake --config scale=zoo all` first")
    rows = pd.read_csv(file).to_dict(orient="records")
    return [{str(key): value for key, value in row.items() if value == value} for row in rows]


if __name__ == "__main__":
    grid = sys.argv[1:2] == ["--grid"]
    plan = build_plan(load_config(scale=sys.argv[2] if grid else "zoo"))
    for card in pack_grid(plan) if grid else pack(plan, sys.argv[1:]):
        print(card)
