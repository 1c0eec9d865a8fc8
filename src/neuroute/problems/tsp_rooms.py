"""Where the TSP's part of each stage lies."""

ROOMS = {
    "labels": "neuroute.datasets.tsp_kind:KIND",
    "decode": "neuroute.decoding.decode:decode",
    "improve": "neuroute.decoding.decode:improve",
    "decision": "neuroute.training.decisions:PathDecision",
    "construct": "neuroute.decoding.decode:construct",
    "supervised": "neuroute.training.supervised:supervised",
    "path-tsp": "neuroute.training.path_tsp:path_tsp",
    "self-improvement": "neuroute.training.self_improvement:self_improvement",
    "reconstruction": "neuroute.training.reconstruction_tsp:reconstruction",
    "reinforce": "neuroute.training.reinforce_tsp:reinforce",
}
