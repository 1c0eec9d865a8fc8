"""Where the part of each stage lies of the 16 vehicle routing problems of MVMoE."""

ROOMS = {
    "labels": "neuroute.datasets.vrp_kind:KIND",
    "decode": "neuroute.decoding.vrp:decode",
    "improve": "neuroute.decoding.vrp:improve",
    "decision": "neuroute.training.reinforce_vrp:decision",
    "construct": "neuroute.decoding.vrp:construct",
    "reinforce": "neuroute.training.reinforce_vrp:reinforce",
}
