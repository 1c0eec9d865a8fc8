"""The columns of evaluation records, which rendering reads without torch."""

COLUMNS = (
    "paper", "run", "group", "seed", "test", "distribution", "n", "n_instances", "reference", "decoding", "method",
    "beam", "log_n", "batch_size", "metric", "value", "unit", "device", "threads", "torch", "scale", "code",
    "wall_time_s",
)  # fmt: skip
