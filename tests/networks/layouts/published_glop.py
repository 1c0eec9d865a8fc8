"""What GLOP's training scripts write: names and shapes of tensors, small.  Nothing of this package is used."""

from published_code import DEPTH, FFN, HEADS, WIDTH, Shapes


def norm(name: str) -> Shapes:
    parts = ("weight", "bias", "running_mean", "running_var")
    return {f"{name}.{part}": (WIDTH,) for part in parts} | {f"{name}.num_batches_tracked": ()}


def reviser() -> Shapes:
    """Of the attention model, and positions, with which nothing computes."""
    return attention_model() | {"embedder.pe.pe": (20, 1, WIDTH)}


def attention_model() -> Shapes:
    shapes: Shapes = {"W_placeholder": (2 * WIDTH,)}
    shapes |= {"init_embed.weight": (WIDTH, 2), "init_embed.bias": (WIDTH,)}
    for i in range(DEPTH):
        at = f"embedder.layers.{i}"
        shapes |= {f"{at}.0.module.W_{name}": (HEADS, WIDTH, WIDTH // HEADS) for name in ("query", "key", "val")}
        shapes |= {f"{at}.0.module.W_out": (HEADS, WIDTH // HEADS, WIDTH)}
        shapes |= {f"{at}.2.module.0.weight": (FFN, WIDTH), f"{at}.2.module.0.bias": (FFN,)}
        shapes |= {f"{at}.2.module.2.weight": (WIDTH, FFN), f"{at}.2.module.2.bias": (WIDTH,)}
        shapes |= norm(f"{at}.1.normalizer") | norm(f"{at}.3.normalizer")
    shapes |= {"project_node_embeddings.weight": (3 * WIDTH, WIDTH), "project_step_context.weight": (WIDTH, 2 * WIDTH)}
    shapes |= {f"project_{name}.weight": (WIDTH, WIDTH) for name in ("fixed_context", "out")}
    return shapes


def partition() -> Shapes:
    shapes: Shapes = {}
    linear = {"v_lin0": 3, "e_lin0": 2} | {f"e_lins0.{i}": WIDTH for i in range(DEPTH)}
    linear |= {f"v_lins{k}.{i}": WIDTH for k in range(1, 5) for i in range(DEPTH)}
    for name, inputs in linear.items():
        shapes |= {f"emb_net.{name}.weight": (WIDTH, inputs), f"emb_net.{name}.bias": (WIDTH,)}
    for i in range(DEPTH):
        shapes |= norm(f"emb_net.v_bns.{i}.module") | norm(f"emb_net.e_bns.{i}.module")
    for i, outputs in enumerate((WIDTH, WIDTH, 1)):
        shapes |= {f"par_net_heu.lins.{i}.weight": (outputs, WIDTH), f"par_net_heu.lins.{i}.bias": (outputs,)}
    return shapes
