"""Streams of torch's CPU generators."""

import torch

from neuroute.core.device import stream_seed


def test_streams_and_numbers_differ_in_what_a_generator_heeds() -> None:
    seeds = {stream_seed(stream, number) for stream in range(20) for number in range(2000)}
    assert len(seeds) == 20 * 2000
    assert all(0 <= seed < 2**32 for seed in seeds)
    drawn = {float(torch.rand((), generator=torch.Generator().manual_seed(stream_seed(s, 0)))) for s in range(50)}
    assert len(drawn) == 50
