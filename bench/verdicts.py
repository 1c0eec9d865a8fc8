"""How often verdicts are right, by form: intervals that hold the truth, and claims that are found.

    python bench/verdicts.py [--repeats 2000] [--out docs/measured/checks/verdicts.csv]

Trainings of models are made up with known gaps and known spreads, on instances that are hard for all models alike, and
are judged by the product's own functions.  Each line is a setting: `held_pct` of the intervals held the truth,
`found_pct` of the claims were supported where they were true (sides 20 % apart, exponents 0.1), `wrong_pct` were
decided wrongly where nothing was (a level: where the sides were apart by just its margin).
"""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from neuroute.analysis.contrasts import Estimate, Gap, Spread, contrast, law, mean_of, spread_ratio
from neuroute.core.files import write_text
from neuroute.core.lazy import pd
from neuroute.core.text import csv_text
from neuroute.pipeline.plan.claims import Claim, Comparison
from neuroute.pipeline.rendering.comparisons import Finding
from neuroute.pipeline.rendering.verdicts import Judged

EFFECT = math.log(1 / 0.8)
HEADS = ("form", "setting", "held_pct", "found_pct", "wrong_pct", "repeats")
Draw = Callable[[np.random.Generator, int], np.ndarray]  # (generator, trainings) -> standard deviates
NORMAL: Draw = lambda rng, k: rng.normal(size=k)  # noqa: E731
TAILS: Draw = lambda rng, k: rng.standard_t(4, k) / 2**0.5  # noqa: E731


class World:
    """Models with gaps of their own, on test sets whose instances all share."""

    def __init__(self, rng: np.random.Generator, instances: int = 128, noise: float = 0.5, draw: Draw = NORMAL) -> None:
        self.rng, self.instances, self.noise, self.draw = rng, instances, noise, draw
        self.hard: dict[int, np.ndarray] = {}  # test set -> what makes its instances hard for all models
        self.luck: dict[tuple[str, int], np.ndarray] = {}  # model, test set -> deviates of its trainings

    def model(
        self, name: str, logs: Sequence[float], trainings: int, spread: float, alike: float = 0.6, uses: float = 0.8
    ) -> list[Gap]:
        """Measure a model of these true ln gaps on as many test sets; its trainings vary alike on all of them.

        A model measured again is used in another way: its trainings' luck correlates with the first by `uses`.
        """
        common = self.draw(self.rng, trainings)
        gaps = []
        for i, log in enumerate(logs):
            own = self.draw(self.rng, trainings)
            fresh = math.sqrt(alike) * common + math.sqrt(1 - alike) * own
            first = self.luck.setdefault((name, i), fresh)
            deviates = fresh if first is fresh else uses * first + math.sqrt(1 - uses**2) * fresh
            hard = self.hard.setdefault(i, self.rng.normal(size=self.instances))
            of_each = math.exp(log) * (1 + self.noise * (hard + 0.7 * self.rng.normal(size=self.instances)))
            shift = float(of_each.mean()) / math.exp(log)
            values = tuple(float(v) for v in np.exp(log + spread * deviates) * shift)
            errors = (of_each - of_each.mean()) / math.sqrt(self.instances * (self.instances - 1))
            gaps.append(Gap(values, errors, f"set {i}", self.instances, "A", "tsp", 1.0, name))
        return gaps


def judged(form: str, estimates: Sequence[tuple[Estimate, tuple[Estimate, ...]]], margin: float | None = None) -> str:
    """The verdict on findings, each an estimate and its cells."""
    ways = Comparison(table="t", by="m", order=("a", "b"))
    claim = Claim(
        id="c", claim="", where="", weight="result", printed="supports", form=form, margin=margin, compare=(ways,)
    )  # type: ignore[arg-type]
    return Judged(claim, tuple(Finding("", of, cells=cells) for of, cells in estimates)).verdict


def pair(
    world: World,
    effect: float,
    sets: int,
    trainings: tuple[int, int],
    spreads: tuple[float, float],
    pool: Spread | None,
) -> tuple[Estimate, tuple[Estimate, ...]]:
    """The mean log ratio of two models, and each cell's."""
    level = math.log(8)
    lower = world.model("lower", [level + 0.5 * i - effect for i in range(sets)], trainings[0], spreads[0])
    upper = world.model("upper", [level + 0.5 * i for i in range(sets)], trainings[1], spreads[1])
    of = [[(-1.0, a), (1.0, b)] for a, b in zip(lower, upper, strict=True)]
    if pool is None:
        variances = [float(np.var(np.log(side[0].values), ddof=1)) for side in (lower, upper)]
        pool = Spread(math.sqrt(np.mean(variances)), sum(trainings) - 2)
    mean = contrast([(c / sets, gap) for parts in of for c, gap in parts], lambda gap: pool)
    return mean, tuple(contrast(parts, lambda gap: pool) for parts in of)


# trainings, spreads of both, pooled spread with its freedom or None of their own, test sets, instances, noise, deviates
Setting = tuple[tuple[int, int], tuple[float, float], Spread | None, int, int, float, Draw]
SETTINGS: dict[str, Setting] = {
    "1 and 1, spread 9 % as pooled": ((1, 1), (0.09, 0.09), Spread(0.09, 48), 1, 128, 0.5, NORMAL),
    "3 and 3, 9 %": ((3, 3), (0.09, 0.09), Spread(0.09, 48), 1, 128, 0.5, NORMAL),
    "5 and 5, 9 %": ((5, 5), (0.09, 0.09), Spread(0.09, 48), 1, 128, 0.5, NORMAL),
    "3 and 1, 9 %": ((3, 1), (0.09, 0.09), Spread(0.09, 48), 1, 128, 0.5, NORMAL),
    "3 and 3, pool of two models": ((3, 3), (0.09, 0.09), Spread(0.09, 4), 1, 128, 0.5, NORMAL),
    "3 and 3, pool of these alone": ((3, 3), (0.09, 0.09), None, 1, 128, 0.5, NORMAL),
    "8 and 8, pool of these alone": ((8, 8), (0.09, 0.09), None, 1, 128, 0.5, NORMAL),
    "3 and 3, spreads 5 and 13 %": ((3, 3), (0.05, 0.13), Spread(0.09, 48), 1, 128, 0.5, NORMAL),
    "3 and 3, spreads 3 and 15 %": ((3, 3), (0.03, 0.15), Spread(0.11, 48), 1, 128, 0.5, NORMAL),
    "1 and 1, spreads 5 and 13 %": ((1, 1), (0.05, 0.13), Spread(0.1, 48), 1, 128, 0.5, NORMAL),
    "3 and 3, tails of t with 4": ((3, 3), (0.09, 0.09), Spread(0.09, 48), 1, 128, 0.5, TAILS),
    "3 and 3, 25 %, 8 instances": ((3, 3), (0.25, 0.25), Spread(0.25, 10), 1, 8, 0.3, NORMAL),
    "3 and 3, converged: 4 %, noise of instances most": ((3, 3), (0.04, 0.04), Spread(0.04, 24), 1, 64, 1.0, NORMAL),
    "5 and 5, 3 %": ((5, 5), (0.03, 0.03), Spread(0.03, 48), 1, 512, 0.5, NORMAL),
    "1 and 1, four test sets": ((1, 1), (0.09, 0.09), Spread(0.09, 48), 4, 128, 0.5, NORMAL),
    "3 and 3, four test sets": ((3, 3), (0.09, 0.09), Spread(0.09, 48), 4, 128, 0.5, NORMAL),
}


def drawn_pair(rng: np.random.Generator, setting: Setting, effect: float) -> tuple[Estimate, tuple[Estimate, ...]]:
    """A pair of a world of its own."""
    trainings, spreads, pool, sets, instances, noise, draw = setting
    return pair(World(rng, instances, noise, draw), effect, sets, trainings, spreads, pool)


def of_settings(repeats: int) -> list[dict[str, object]]:
    """Tendencies, superlatives over three rivals, universals and levels, in all settings."""
    lines = []
    for name, setting in SETTINGS.items():
        trainings, sets = setting[0], setting[3]
        one = partial(drawn_pair, np.random.default_rng(20261128), setting)
        apart, level = [one(EFFECT) for _ in range(repeats)], [one(0.0) for _ in range(repeats)]
        held = share(holds(of, truth) for each, truth in ((apart, EFFECT), (level, 0.0)) for of, _ in each)
        lines.append(row("tendency", name, held, verdicts("tendency", apart), wrong("tendency", level), repeats))
        if sets > 1:
            lines.append(row("universal", name, None, verdicts("universal", apart), wrong("universal", level), repeats))
        if min(trainings) > 1:
            three = [[one(EFFECT) for _ in range(3)] for _ in range(repeats // 3)]
            last = [[*each[:2], one(0.0)] for each in three]  # the third rival is level
            found = share(judged("superlative", each) == "supported" for each in three)
            false = share(judged("superlative", each) == "supported" for each in last)
            lines.append(row("superlative", f"{name}, three rivals", None, found, false, repeats // 3))
            edge = [one(-math.log(0.9)) for _ in range(repeats)]
            found = share(judged("level", [each], 0.1) == "supported" for each in level)
            false = share(judged("level", [each], 0.1) == "supported" for each in edge)
            lines.append(row("level", f"{name}, margin 10 %", None, found, false, repeats))
    return lines


def of_uses(repeats: int) -> list[dict[str, object]]:
    """Tendencies of trainings used in two ways, such as with and without search."""
    lines = []
    for name, trainings, sets, uses in (
        ("1 in two ways", 1, 1, 0.8),
        ("3 in two ways", 3, 1, 0.8),
        ("3 in two ways, four test sets", 3, 4, 0.8),
        ("3 in two ways that correlate by 0.5", 3, 1, 0.5),
        ("3 in two ways that correlate by 0.95", 3, 1, 0.95),
    ):
        rng, of = np.random.default_rng(20261128), {}
        for effect in (EFFECT, 0.0):
            of[effect] = []
            for _ in range(repeats):
                world, level = World(rng), math.log(8)
                sides = [
                    world.model("one", [level + 0.5 * i - less for i in range(sets)], trainings, 0.09, uses=uses)
                    for less in (0.0, effect)
                ]
                parts = [(sign / sets, gap) for sign, side in zip((1, -1), sides, strict=True) for gap in side]
                of[effect].append((contrast(parts, lambda gap: Spread(0.09, 48)), ()))
        held = share(holds(each, truth) for truth, pairs in of.items() for each, _ in pairs)
        lines.append(row("tendency", name, held, verdicts("tendency", of[EFFECT]), wrong("tendency", of[0.0]), repeats))
    return lines


def of_grids(repeats: int) -> list[dict[str, object]]:
    """Laws over twelve models: the difference of two exponents."""
    lines = []
    shapes = [(d, w) for d in (1, 2, 4, 8) for w in (16, 32, 64)]
    deep = np.log([d for d, _ in shapes])
    wide = 2 * np.log([w for _, w in shapes])
    design = np.stack([np.ones(12), deep - deep.mean(), wide - wide.mean()], 1)
    for name, trainings, spread, about, draw in (
        ("twelve models, 3 trainings", [3] * 12, 0.11, 0.0, NORMAL),
        ("twelve models, 1 training", [1] * 12, 0.11, 0.0, NORMAL),
        ("twelve models, 3 or 1 trainings", [3, 1] * 6, 0.11, 0.0, NORMAL),
        ("twelve models, 3 trainings, models off the law by 10 %", [3] * 12, 0.11, 0.1, NORMAL),
        ("twelve models, 3 trainings, tails of t with 4", [3] * 12, 0.11, 0.0, TAILS),
    ):
        estimates = {}
        for apart in (0.1, 0.0):
            rng = np.random.default_rng(20261128)
            truth = np.array([2.0, -0.2 - apart, -0.2])
            estimates[apart] = []
            for _ in range(repeats):
                world, logs = World(rng, 1000, 0.5, draw), design @ truth + about * rng.normal(size=12)
                gaps = [
                    world.model(str(i), [log], k, spread)[0]
                    for i, (log, k) in enumerate(zip(logs, trainings, strict=True))
                ]
                estimates[apart].append(law(design, gaps, (0, -1, 1), lambda gap: Spread(0.11, 48)))
        held = share(holds(of, apart) for apart, each in estimates.items() for of in each)
        found = share(of.p_above() <= 0.05 for of in estimates[0.1])
        false = share(min(of.p_above(), replace(of, value=-of.value).p_above()) <= 0.05 for of in estimates[0.0])
        lines.append(row("law", name, held, found, false, repeats))
    lines_of = [(k, value) for k in (0, 1) for value in sorted({shape[k] for shape in shapes})]
    groups = [[i for i, shape in enumerate(shapes) if shape[k] == value] for k, value in lines_of]
    for noise in (0.04, 0.08, 0.12):
        rng, spreads = np.random.default_rng(20261128), {}
        for apart in (0.3, 0.0):
            logs = design @ np.array([2.0, -0.2 - apart, -0.2])
            off = logs - np.polyval(np.polyfit(deep + wide, logs, 1), deep + wide)
            truth = 0.5 * math.log(1 + float(off @ off) / 10 / noise**2)
            drawn = (spread_ratio(deep + wide, logs + noise * rng.normal(size=12), groups) for _ in range(repeats))
            spreads[apart] = [(estimate, holds(estimate, truth)) for estimate in drawn]
        found = share(of.p_above() <= 0.05 for of, _ in spreads[0.3])
        false = share(min(of.p_above(), replace(of, value=-of.value).p_above()) <= 0.05 for of, _ in spreads[0.0])
        held = share(right for _, right in spreads[0.3])
        name = f"spreads around one law and around seven, noise {100 * noise:.0f} %"
        lines.append(row("law", name, held, found, false, repeats))
    return lines


def of_costs(repeats: int) -> list[dict[str, object]]:
    """Ratios of times or memory: the spread of the ratios over sizes or problems."""
    lines, rng = [], np.random.default_rng(20261128)
    for cells in (3, 6, 16):
        apart = [mean_of((EFFECT + 0.1 * rng.normal(size=cells)).tolist()) for _ in range(repeats)]
        level = [mean_of((0.1 * rng.normal(size=cells)).tolist()) for _ in range(repeats)]
        held = share(holds(of, truth) for each, truth in ((apart, EFFECT), (level, 0.0)) for of in each)
        found = verdicts("tendency", [(of, ()) for of in apart])
        lines.append(row("tendency", f"times, {cells} cells that differ by 10 %", held, found,
                         wrong("tendency", [(of, ()) for of in level]), repeats))  # fmt: skip
    return lines


def holds(estimate: Estimate, truth: float) -> bool:
    """Whether its interval does."""
    low, high = estimate.interval() or (0.0, 0.0)
    return low <= truth <= high


def verdicts(form: str, of: Sequence[tuple[Estimate, tuple[Estimate, ...]]]) -> float:
    """The share that is supported."""
    return share(judged(form, [each]) == "supported" for each in of)


def wrong(form: str, of: Sequence[tuple[Estimate, tuple[Estimate, ...]]]) -> float:
    """The share that is decided."""
    return share(judged(form, [each]) in ("supported", "contradicted") for each in of)


def share(of: object) -> float:
    """In per cent."""
    return 100 * float(np.mean([*of]))  # type: ignore[misc]


def row(form: str, name: str, held: float | None, found: float, false: float, repeats: int) -> dict[str, object]:
    """A line of the CSV."""
    numbers = ["" if value is None else f"{value:.1f}" for value in (held, found, false)]
    return dict(zip(HEADS, (form, name, *numbers, repeats), strict=True))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("docs/measured/checks/verdicts.csv"))
    arguments = parser.parse_args()
    lines = [line for part in (of_settings, of_uses, of_grids, of_costs) for line in part(arguments.repeats)]
    lines.sort(key=lambda line: ("tendency", "superlative", "universal", "level", "law").index(str(line["form"])))
    write_text(arguments.out, csv_text(pd.DataFrame(lines, columns=list(HEADS))))
    print(*(", ".join(map(str, line.values())) for line in lines), sep="\n")
