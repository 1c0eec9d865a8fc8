"""Names and shapes of what INViT's training script writes.  Nothing of this package is used."""

from collections.abc import Iterator

from published_code import Size, linear_shapes


def invit(problem: str, size: Size, views: int = 2) -> Iterator[tuple[str, tuple[int, ...]]]:
    w, cvrp = size.width, problem == "cvrp"
    for name in ("action_encoder", *(f"state_encoders.{v}" for v in range(views))):
        yield from linear_shapes(f"{name}.input_emb", w, 2 + cvrp)
        yield from linear_shapes(f"{name}.input_emb_for_last", w, 2 + cvrp)
        if cvrp or name != "action_encoder":
            yield from linear_shapes(f"{name}.input_emb_for_first", w, 2)
        for i in range(size.depth):
            for part in ("w_qs", "w_ks", "w_vs", "fc"):
                yield from linear_shapes(f"{name}.encoder.MHA_layers.{i}.{part}", w, w, bias=False)
            for norm in (f"MHA_layers.{i}.layer_norm", f"norm1_layers.{i}", f"norm2_layers.{i}"):
                yield f"{name}.encoder.{norm}.weight", (w,)
                yield f"{name}.encoder.{norm}.bias", (w,)
            yield from linear_shapes(f"{name}.encoder.linear1_layers.{i}", size.feed_forward, w)
            yield from linear_shapes(f"{name}.encoder.linear2_layers.{i}", w, size.feed_forward)
    for i in range(2):
        for part in ("W0_att", "Wq_att", "W1_MLP", "W2_MLP"):
            yield from linear_shapes(f"decoder.decoder_layers.{i}.{part}", w, w)
        for norm in ("BN_att", "BN_MLP"):
            yield f"decoder.decoder_layers.{i}.{norm}.weight", (w,)
            yield f"decoder.decoder_layers.{i}.{norm}.bias", (w,)
    yield from linear_shapes("decoder.Wq_final", w, w)
    for name in ("WK_att_decoder", "WV_att_decoder"):
        yield from linear_shapes(name, 3 * w, (views + 1) * w)
    yield from linear_shapes("query_mlp", w, (2 * views + 1 + cvrp) * w)
