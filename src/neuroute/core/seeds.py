"""Seeds of torch's CPU generators, which heed only the lower 32 bits of what they are given."""

GOLDEN = 2_654_435_769  # 2^32 over the golden ratio: its multiples lie far apart among 32-bit numbers


def stream_seed(stream: int, number: int) -> int:
    """The seed of draw `number` of a stream: of few streams, hundreds of millions of numbers all differ."""
    return (stream * GOLDEN + number) % 2**32
