"""Where jobs of a machine with several GPUs go, by a torch that pretends to have them."""

import pytest
import torch
from refusals import one_line

from neuroute.core import device as devices
from neuroute.core import gpus
from neuroute.core.files import lock, open_lock
from pretended import pretended_gpu


def test_a_job_takes_a_gpu_that_no_other_has_and_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    placed: list[torch.device] = []
    with pretended_gpu(monkeypatch, count=2):
        monkeypatch.setattr(torch.cuda, "set_device", placed.append)
        other = open_lock(gpus.LOCKS / "pretended-0.0")
        assert lock(other)
        for _ in range(2):
            assert devices.claim("auto") == torch.device("cuda", 1)
        assert placed[0] == torch.device("cuda", 1)
        other.close()
        assert devices.claim("cuda") == torch.device("cuda", 1)
        assert devices.claim("cpu") == torch.device("cpu")


def test_processes_of_a_run_take_a_gpu_each_and_more_than_there_are_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended_gpu(monkeypatch, count=2):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
        with one_line("3 GPUs asked for, but torch finds 2 on this machine"):
            devices.claim("cuda")
        assert devices.claim("cuda", jobs_per_gpu=2) == torch.device("cuda", 0)
        assert devices.threads_here(8) == 2
        assert devices.threads_here(2) == 1


def test_memory_of_jobs_that_share_a_gpu_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended_gpu(monkeypatch):
        place, total, taken = torch.device("cuda", 0), 8.0, 0.0
        for _ in range(4):
            free = total - taken
            monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_, free=free: (free * 1e9, total * 1e9))
            taken += devices.memory_budget_gb(place, None, jobs_per_gpu=4)
        assert taken == pytest.approx(0.6 * total)
        assert devices.memory_budget_gb(place, 3.0, jobs_per_gpu=4) == 3.0
        assert devices.memory_budget_gb(torch.device("cpu"), None) == 4.0


def test_times_say_whether_a_gpu_multiplies_in_tf32(monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended_gpu(monkeypatch):
        assert devices.name(devices.claim("cuda")) == "pretended GPU, TF32"
        assert devices.name(devices.claim("cuda", tf32=False)) == "pretended GPU"
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (7, 5))
        assert devices.name(devices.claim("cuda")) == "pretended GPU"


def test_attention_is_not_planned_anew_for_each_length(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.backends.cuda.enable_cudnn_sdp(True)
    with pretended_gpu(monkeypatch):
        devices.choose("cuda")
    assert not torch.backends.cuda.cudnn_sdp_enabled()
