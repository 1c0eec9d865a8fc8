"""`python bench/exact.py`: every solver and decoding on instances so small that all solutions can be listed.

The TSP in all of TSPLIB's distances and the 16 vehicle routing problems, three to six customers.  Each answer must be a
solution, cost what the package says, and cost no less than the least of all; `by_definition` says what these are.
Prints a Markdown table.  `--keep FILE` goes on after the instances that an earlier call has done.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import by_definition as plain
import numpy as np

import neuroute
from neuroute.api.classical import available, solve_with
from neuroute.problems.vrp import SWITCHES

TSPS = ("EXACT_2D", "EUC_2D", "CEIL_2D", "ATT", "GEO", "EXPLICIT", "ATSP")
PROBLEMS = ("TSP", *SWITCHES)
DECODINGS = {  # by problem of the network
    "tsp": ("greedy", "greedy-x8", "beam4", "rrc5", "prc5", "prc5-insertion"),
    "cvrp": ("greedy", "multistart", "multistart-x8"),
    "vrp": ("greedy", "greedy-x8", "multistart", "multistart-x8"),
}
SECONDS = 0.02  # of searches that use all their time
LATE = 1e-3  # that `Instance.check` lets solutions be: solvers compute on integer grids
NOISE = 1e-9


class Answer(NamedTuple):
    method: str
    above: float  # the least cost, as a share of it
    wrong: str = ""


def make(problem: str, number: int, folder: Path) -> tuple[neuroute.Instance, plain.Vehicles | list[list[float]]]:
    """An instance of the package, and the same by definition; folder: for files."""
    rng = np.random.default_rng([number, *map(ord, problem)])
    if problem == "TSP":
        return make_tsp(TSPS[number % len(TSPS)], rng, folder)
    switches, customers = SWITCHES[problem], int(rng.integers(3, 7))
    coords = rng.random((customers + 1, 2)).astype(np.float32).astype(np.float64)
    demand = np.concatenate([[0], rng.integers(1, 10, customers)])
    capacity = int(rng.integers(9, 25))
    if switches.backhaul:
        demand[1 + rng.permutation(customers)[: rng.integers(1, customers)]] *= -1
    away = np.hypot(*(coords - coords[0]).T)
    fields: dict[str, Any] = {"open": True} if switches.open else {}
    if switches.limit:
        fields["limit"] = float(2 * away.max() * rng.uniform(1.02, 1.6))
    if switches.windows:
        middle = rng.uniform(away, 2.7 - away)
        half = rng.uniform(0.1, 0.6, customers + 1)
        windows = np.stack([middle - half, middle + half], axis=1).clip(0, 3)
        windows[0] = 0, 3
        fields["windows"] = windows.astype(np.float32).astype(np.float64)
        fields["service"] = np.float32([0, *[0.1] * customers]).astype(np.float64)
    instance = neuroute.Instance.from_arrays(coords, demand, capacity, name=f"{problem}-{number}", **fields)
    lists = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in fields.items()}
    ways = plain.ways("EXACT_2D", coords.tolist())
    return instance, plain.Vehicles(ways, demand.tolist(), capacity, **lists)


def make_tsp(kind: str, rng: np.random.Generator, folder: Path) -> tuple[neuroute.Instance, list[list[float]]]:
    n = int(rng.integers(4, 7))
    if kind in ("EXPLICIT", "ATSP"):
        ways = rng.integers(1, 100, (n, n))
        ways = ways if kind == "ATSP" else np.maximum(ways, ways.T)
        np.fill_diagonal(ways, 0)
        return neuroute.Instance.from_distances(ways, name=kind), ways.tolist()
    if kind == "EXACT_2D":
        coords = rng.random((n, 2))
        return neuroute.Instance.from_arrays(coords, name=kind), plain.ways(kind, coords.tolist())
    coords = rng.uniform(-80, 80, (n, 2)).round(2)
    rows = "\n".join(f"{i} {x} {y}" for i, (x, y) in enumerate(coords.tolist(), 1))
    file = folder / f"{kind}.tsp"
    file.write_text(f"TYPE : TSP\nDIMENSION : {n}\nEDGE_WEIGHT_TYPE : {kind}\nNODE_COORD_SECTION\n{rows}\nEOF\n")
    return neuroute.load(file), plain.ways(kind, coords.tolist())


def methods(instance: neuroute.Instance, models: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each way to solve an instance: its name, and its stops."""
    for name in available(instance.problem if instance.ways is not None else instance.variant.lower(), instance):
        yield name, lambda name=name: by_solver(name, instance)
    for problem in instance.problems:
        for decoding in DECODINGS[problem]:
            how = {"model": models[problem], "decoding": decoding}
            yield f"network {problem}, {decoding}", lambda how=how: neuroute.solve(instance, **how).stops
        search = {"model": models[problem], "seconds": SECONDS}
        yield f"network {problem}, {SECONDS} s", lambda search=search: neuroute.solve(instance, **search).stops


def by_solver(name: str, instance: neuroute.Instance) -> np.ndarray:
    """Give a solver that has found nothing a second."""
    try:
        return solve_with(name, instance, SECONDS).stops
    except neuroute.NeurouteError:
        return solve_with(name, instance, 1.0).stops


def check(instance: neuroute.Instance, definition: Any, models: dict[str, Any]) -> list[Answer]:
    """Solve an instance in every way, and say what is wrong with each answer."""
    is_tsp = isinstance(definition, list)
    least = plain.shortest_tour(definition) if is_tsp else definition.least(LATE)
    answers = []
    for name, solve in methods(instance, models):
        try:
            stops = solve()
        except neuroute.NeurouteError as error:
            answers.append(Answer(name, 0.0, f"none: {error}"))
            continue
        if is_tsp:
            there = sorted(stops.tolist()) == list(range(len(definition)))
            total = plain.tour_length(definition, stops.tolist()) if there else None
        else:
            order, via = stops.tolist()
            routes: list[list[int]] = []
            for customer, by_depot in zip(order, via, strict=True):
                routes = [*routes, [customer]] if by_depot else [*routes[:-1], [*routes[-1], customer]]
            total = definition.total(routes, LATE + NOISE)
        wrong = ""
        if total is None:
            wrong = f"no solution: {stops.tolist()}"
        elif abs(instance.cost(stops) - total) > NOISE * max(total, 1):
            wrong = f"costs {total}, said to cost {instance.cost(stops)}: {stops.tolist()}"
        elif total < least - NOISE * max(least, 1):
            wrong = f"costs {total}, below the least of all, {least}: {stops.tolist()}"
        answers.append(Answer(name, 0.0 if total is None else total / least - 1, wrong))
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--keep", type=Path, help="a file of answers (.jsonl)")
    options = parser.parse_args()
    models = {problem: neuroute.load_model(problem, device="cpu") for problem in DECODINGS}
    lines = options.keep.read_text().splitlines() if options.keep and options.keep.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(len(lines), options.instances):
            problem = PROBLEMS[number % len(PROBLEMS)]
            instance, definition = make(problem, number // len(PROBLEMS), Path(folder))
            answers = check(instance, definition, models)
            lines.append(json.dumps([problem, instance.name, answers]))
            for answer in answers:
                if answer.wrong:
                    print(f"{problem} {number}, {answer.method}: {answer.wrong}", file=sys.stderr, flush=True)
            if options.keep:
                with options.keep.open("a") as file:
                    file.write(lines[-1] + "\n")
    report(lines)


def report(lines: list[str]) -> None:
    by_method: dict[str, list[tuple[str, float, str]]] = defaultdict(list)
    for problem, _, answers in map(json.loads, lines):
        for method, above, wrong in answers:
            by_method[method].append((problem, above, wrong))
    total = sum(map(len, by_method.values()))
    print(f"{len(lines)} instances, {total:,} answers, {time.strftime('%Y-%m-%d')}.\n")
    print("| method | problems | answers | wrong | least cost found | most above it |\n|---|---|---|---|---|---|")
    for method, answers in by_method.items():
        least = sum(above < NOISE for _, above, _ in answers) / len(answers)
        print(
            f"| {method} | {len({problem for problem, *_ in answers})} | {len(answers)} "
            f"| {sum(bool(wrong) for *_, wrong in answers)} | {least:.1%} | {max(a for _, a, _ in answers):.1%} |"
        )
    sys.exit(any(wrong for answers in by_method.values() for *_, wrong in answers))


if __name__ == "__main__":
    main()
