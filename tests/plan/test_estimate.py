"""What a target costs: runs that others start from are behind it too, and re-construction is counted."""

from pathlib import Path

import pytest
from refusals import one_line

from neuroute.evaluation.flops import RunFlops, per_solution
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import has_gpu, parse_config
from neuroute.pipeline.plan.estimates import Estimates
from neuroute.pipeline.plan.overview import describe
from neuroute.solvers import base
from neuroute.specs.objects import Dataset, Decoding
from plans import plan_of


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_re_construction_costs_as_much_as_its_blocks(problem: str) -> None:
    run = plan_of("paper").runs[f"sit/{problem}_1k"]
    dataset = Dataset(problem=problem, n=1000, count=3)  # type: ignore[arg-type]

    def of(**how: object) -> float:
        return RunFlops(run).improve(dataset, Decoding(method="prc", **how))  # type: ignore[arg-type]

    assert of(iterations=0) == 0
    assert of(iterations=20, longest=50) == pytest.approx(2 * of(iterations=10, longest=50))
    assert of(iterations=10, longest=50) < of(iterations=10)
    assert of(iterations=10, most_blocks=1) < of(iterations=10)
    whole = dataset.count * per_solution(run.network, dataset.nodes)["gflops_shrinking"] * 1e9
    assert 0.3 * whole < of(iterations=1) < 1.5 * whole  # half as many tokens a decision, nearly as many decisions


def test_a_scale_for_a_gpu_is_reckoned_on_one(tmp_path: Path) -> None:
    """GPU-hours come first, also where no GPU is; config.yaml may ask for the processor."""
    auto, cpu = (plan_of("gpu", ("pens",), device=device, work_dir=str(tmp_path)) for device in ("auto", "cpu"))
    on_gpu, on_cpu = describe(auto, None), describe(cpu, None)
    for text in (on_gpu, on_cpu):
        columns = next(line for line in text.splitlines() if line.startswith("paper"))
        assert columns.index("GPU-hours") < columns.index("core-hours") < columns.index("time")
    assert ("No GPU here" in on_gpu) == (not has_gpu())
    assert "No GPU here" not in on_cpu
    gpu_hours, core_hours = (float(cell.replace(",", "")) for cell in row(on_gpu, "pens")[4:6])
    assert core_hours < 1 < gpu_hours
    assert row(on_cpu, "pens")[4] == row(on_gpu, "pens")[4]


def test_scale_gpu_takes_a_day(tmp_path: Path) -> None:
    assert 20 < float(row(describe(plan_of("gpu", work_dir=str(tmp_path)), None), "all")[4]) <= 24


def row(text: str, paper: str) -> list[str]:
    return next(line.split() for line in text.splitlines() if line.startswith(f"{paper} "))


def test_what_print_says_of_times_and_what_does_not_fit_stands_beside_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "machine_memory", lambda: 30e9)
    plan = plan_of("paper", ("pens", "sit"), work_dir=str(tmp_path))
    largest = next(id for id, labels in plan.label_jobs.items() if labels.dataset.n == 10**5 and "hgs" in labels.solver)
    text = [line for target in ("pens/pens_a", largest) for line in describe(plan, target).splitlines()]
    (printed,) = (line for line in text if "in print" in line)
    assert printed.startswith("pens/pens_*: 72 h on one RTX 5090 in print, ")
    (refused,) = (line for line in text if line.startswith("hgs-timed: "))
    assert "100,001 nodes take 86 GB, this machine has 30" in refused


def test_times_in_print_are_of_runs_that_there_are(tmp_path: Path) -> None:
    scale = tmp_path / "mine.yaml"
    text = Path("workflow/scales/paper.yaml").read_text().replace("pens/pens_*:", "pens/pens5_*:")
    scale.write_text(text)
    with one_line(r"printed_times.pens/pens5_\*: no such run"):
        build_plan(parse_config({"scale": str(scale), "papers": ["pens"]}))


def test_jobs_that_are_done_say_how_long_the_others_take(tmp_path: Path) -> None:
    """As Snakemake has measured them; a damaged file counts as none."""
    plan = build_plan(parse_config({"papers": ["pens"], "work_dir": str(tmp_path), "device": "cpu"}))
    before = Estimates(plan)
    reckoned = {run: before.train(run).seconds - before.start_s for run in plan.runs}
    first, second, *_ = plan.runs
    for run, text in {first: f"s\th:m:s\n{before.start_s + 3 * reckoned[first]}\t0:00:09\n", second: "s\n"}.items():
        file = plan.work / "usage" / "train" / f"{run}.tsv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    after = Estimates(plan)
    for run, seconds in reckoned.items():
        assert after.train(run).seconds - after.start_s == pytest.approx(3 * seconds)
