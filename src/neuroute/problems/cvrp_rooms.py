"""Where the CVRP's part of each stage lies."""

ROOMS = {
    "labels": "neuroute.datasets.cvrp_kind:KIND",
    "decode": "neuroute.decoding.cvrp:decode",
    "improve": "neuroute.decoding.cvrp:improve",
    "decision": "neuroute.training.cvrp:CvrpDecision",
    "construct": "neuroute.decoding.cvrp:construct",
    "supervised": "neuroute.training.cvrp:supervised",
    "reconstruction": "neuroute.training.reconstruction_cvrp:reconstruction",
    "reinforce": "neuroute.training.reinforce_cvrp:reinforce",
}
