"""Names and shapes of what MDAM's training script writes.  Nothing of this package is used."""

from collections.abc import Iterator

from published_code import linear_shapes

DEPTH, WIDTH, HEADS, FFN, DECODERS = 3, 16, 4, 24, 3


def mdam(problem: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Without what batch norms remember."""
    width, heads, hidden = WIDTH, HEADS, FFN
    if problem == "tsp":
        yield from linear_shapes("init_embed", width, 2)
        yield "W_placeholder", (2 * width,)
    else:
        yield from linear_shapes("init_embed", width, 3)
        yield from linear_shapes("init_embed_depot", width, 2)
    for i in range(DEPTH):
        for part in ("query", "key", "val"):
            yield f"{attention_of(i)}.W_{part}", (heads, width, width // heads)
        yield f"{attention_of(i)}.W_out", (heads, width // heads, width)
        feed = feed_of(i)
        yield from linear_shapes(f"{feed}.0", hidden, width)
        yield from linear_shapes(f"{feed}.2", width, hidden)
        for norm in norms_of(i):
            yield from ((f"{norm}.{part}", (width,)) for part in ("weight", "bias"))
    known = 2 * width if problem == "tsp" else width + 1
    for d in range(DECODERS):
        yield f"project_node_embeddings.{d}.weight", (3 * width, width)
        yield f"project_fixed_context.{d}.weight", (width, width)
        yield f"project_step_context.{d}.weight", (width, known)
        yield f"project_out.{d}.weight", (width, width)


def attention_of(i: int) -> str:
    return f"embedder.layers.{4 * i}.module" if i < DEPTH - 1 else "embedder.attention_layer"


def feed_of(i: int) -> str:
    return f"embedder.layers.{4 * i + 2}.module" if i < DEPTH - 1 else "embedder.projection.module"


def norms_of(i: int) -> tuple[str, str]:
    if i == DEPTH - 1:
        return "embedder.BN1.normalizer", "embedder.BN2.normalizer"
    return f"embedder.layers.{4 * i + 1}.normalizer", f"embedder.layers.{4 * i + 3}.normalizer"
