"""Runs of networks that make maps of edges, small enough for a test."""

from typing import Any

from neuroute.plan.objects import Network, Run
from neuroute.systems.att_gcn.system import EdgeTraining
from neuroute.systems.difusco.system import Denoising
from neuroute.systems.dimes.system import MetaTraining
from tiny import N, make_run

NETWORKS: dict[str, dict[str, Any]] = {
    "att_gcn.network:AttGcn": {"depth": 2, "width": 8, "near": 3, "actions": 2, "train_nodes": N},
    "difusco.network:Difusco": {"depth": 2, "width": 8, "steps": 2, "actions": 2, "train_nodes": N},
}
KINDS = {"AttGcn": EdgeTraining, "Difusco": Denoising}
DIMES: dict[str, Any] = {"depth": 2, "width": 8, "neighbours": 5, "search_steps": 2, "search_tours": 9, "actions": 2}


def map_run(kind: str, **training: Any) -> Run:
    """Two epochs of 120 instances."""
    name = next(name for name in NETWORKS if name.endswith(f":{kind}"))
    settings = {"samples": 120, "epochs": 2, "batch_size": 32, "learning_rate": 2e-3, "validations": 2} | training
    network = Network(kind=f"neuroute.systems.{name}", arguments=NETWORKS[name])
    return make_run().model_copy(update={"network": network, "training": KINDS[kind](**settings)})


def dimes_run(**network: Any) -> Run:
    """Three batches of four instances, one of two."""
    how = MetaTraining(samples=14, batch_size=4, inner_steps=2, tours=8, learning_rate=2e-3, validations=2)
    arguments = DIMES | {"train_nodes": N} | network
    kind = Network(kind="neuroute.systems.dimes.network:Dimes", arguments=arguments)
    return make_run().model_copy(update={"network": kind, "training": how, "data": ()})
