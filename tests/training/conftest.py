"""A small labelled training set and a run on it."""

from pathlib import Path

import pytest

from neuroute.datasets.labels import make_labels
from neuroute.plan.objects import Dataset, Labels, Network, Run, Supervised

N = 10


def labels(split: str, count: int) -> Labels:
    return Labels(dataset=Dataset(split=split, n=N, count=count), solver="concorde")  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    for split, count in (("train", 120), ("val", 16)):
        make_labels(labels(split, count), folder, [], workers=1, progress=False)
    return folder


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
