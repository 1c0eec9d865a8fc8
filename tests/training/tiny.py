"""A run small enough for a test, and its labels."""

from neuroute.plan.objects import Dataset, Labels, Network, Run, Supervised

N = 10


def labels(split: str, count: int) -> Labels:
    return Labels(dataset=Dataset(split=split, n=N, count=count), solver="concorde")  # type: ignore[arg-type]


def make_run(**training: object) -> Run:
    arguments = {"depth": 2, "width": 16, "heads": 2, "gate": True, "rezero": True, "train_nodes": N}
    settings = {"samples": 120, "batch_size": 32, "learning_rate": 2e-3, "validations": 3} | training
    return Run(
        paper="scaling",
        name="tiny",
        network=Network(kind="neuroute.networks.decoder_only:DecoderOnly", arguments=arguments),
        training=Supervised(**settings),  # type: ignore[arg-type]
        n=N,
        data=(labels("train", 120),),
        validation=labels("val", 16),
    )
