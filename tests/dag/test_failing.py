"""Jobs that fail: how often they are tried, and what is said of them."""

import re
from pathlib import Path

import pytest
from refusals import one_line

from checkout import TOY, TRAINED, replace, toy
from neuroute.core import job
from neuroute.core.errors import NeurouteError, Temporary, may_pass


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (RuntimeError("shapes differ"), False),
        (NeurouteError("no such solver"), False),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (MemoryError(), True),
        (Temporary("a worker died"), True),
        (ConnectionResetError("reset by peer"), True),
    ],
)
def test_what_may_pass_is_tried_again(error: Exception, again: bool) -> None:
    assert may_pass(error) is again


@pytest.mark.parametrize(("status", "runs"), [(1, 1), (2, 1), (job.TEMPORARY, 3), (137, 3)])
def test_a_mark_ends_the_next_attempts(
    status: int, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(job, "run", lambda arguments: calls.append(arguments) or status)  # type: ignore[func-returns-value]
    log = tmp_path / "a.log"
    for attempt in (1, 2, 3):
        log.write_text("the reason\n")
        assert job.run_once(attempt, log, ["train"]) == status or runs == 1
    assert calls == [["train"]] * runs
    assert capsys.readouterr().out == "the reason\n" * (3 - runs)
    job.run_once(1, log, ["train"])  # of the next Snakemake
    assert len(calls) == runs + 1


@pytest.mark.parametrize(
    ("files", "root"),
    [
        (["work/smoke/a.json", "results/table1.csv"], ""),
        (
            ["copies/s3/store/work/smoke/a.json", "copies/s3/store/results/table1.csv", "/mine/test.npz"],
            "copies/s3/store",
        ),
        (["/there/work/mine/work/smoke/a.json", "/there/work/mine/results/table1.csv"], "/there/work/mine"),
        (["work/smoke/a.json", "/there/work/test.npz"], ""),
    ],
)
def test_where_files_lie_follows_from_the_files(files: list[str], root: str) -> None:
    assert job.root_of(files, ["work", "results"]) == root
    with one_line("several storages: here, other"):
        job.root_of(["here/work/a", "other/work/b"], ["work"])


@pytest.mark.slow
@pytest.mark.dag
@pytest.mark.parametrize(("error", "times"), [("RuntimeError", 1), ("MemoryError", 3)])
def test_a_failure_is_said_once_and_tried_as_often_as_it_may_pass(tmp_path: Path, error: str, times: int) -> None:
    run = toy(tmp_path)
    counter = f"open({str(tmp_path / 'tries')!r}, 'a').write('x')"
    code = tmp_path / "src/neuroute/training/train.py"
    replace(
        code, "    check_made(run.labels", f"    {counter}\n    raise {error}('planted')\n    check_made(run.labels"
    )
    done = run(*TOY, "--", TRAINED, check=False)
    assert done.returncode == 1
    assert (tmp_path / "tries").read_text() == "x" * times
    said = done.stdout + done.stderr
    assert f"1 job failed:\ntrain toy/decoder: {error}: planted (work/toy/logs/train/toy/decoder.log)" in said
    assert said.count("planted") == 1
    assert len(said.splitlines()) < 60


@pytest.mark.slow
@pytest.mark.dag
def test_a_rehearsal_finds_what_cannot_run_and_goes_on(tmp_path: Path) -> None:
    """A measurement that fails keeps nothing else from being tried, and leaves the real run alone."""
    run = toy(tmp_path)
    command = ("--keep-going", *TOY, "--config", "rehearse=true", "--", "all")
    code, place = tmp_path / "src/neuroute/evaluation/labelled.py", "dataset = test.labels.dataset\n    spec ="
    planted = "raise RuntimeError('planted')\n    "
    replace(code, place, planted + place)
    done = run(*command, check=False)
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert re.search(r"evaluate toy/decoder/\w+: RuntimeError: planted \(work/rehearsal/toy/logs/", said), said
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.glob("work/rehearsal/toy/runs/**/*.safetensors")}
    assert made == {"work/rehearsal/toy/runs/toy/decoder/model.safetensors"}
    assert not (tmp_path / "work" / "toy").exists()
    replace(code, planted, "")
    run(*command)
    assert (tmp_path / "results" / "rehearsal" / "index.html").exists()
    usage = (tmp_path / "work/rehearsal/toy/usage/train/toy/decoder.tsv").read_text()
    assert float(usage.splitlines()[1].split()[0]) > 0


@pytest.mark.dag
@pytest.mark.parametrize(
    ("file", "place"), [("workflow/Snakefile", "import gc\n"), ("docs/examples/papers/toy/paper.py", "RUN = ")]
)
def test_ctrl_c_before_the_first_job_is_one_line(file: str, place: str, tmp_path: Path) -> None:
    run = toy(tmp_path)
    replace(tmp_path / file, place, f"raise KeyboardInterrupt\n{place}")
    done = run("-n", "all", *TOY, check=False)
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1] == "interrupted: no job was running; run the same command again"
    assert "Traceback" not in done.stderr
