"""Parameters of every network and by its formula, as published or as its paper's code has them."""

from typing import Any

import pytest
import torch
from torch import nn

from neuroute.evaluation.flops import counts
from neuroute.networks.bq import Bq, BqCvrp
from neuroute.networks.icam import Icam, IcamCvrp
from neuroute.networks.lehd import Lehd
from neuroute.networks.mvmoe import MvMoe
from neuroute.networks.pens import Pens
from neuroute.networks.pomo import Pomo, PomoCvrp
from neuroute.networks.sit import Sit, SitCvrp
from neuroute.networks.weights import parameters
from neuroute.specs.objects import Network
from neuroute_systems.att_gcn.network import AttGcn
from neuroute_systems.dgl.network import Dgl
from neuroute_systems.difusco.network import Difusco
from neuroute_systems.dimes.network import Dimes
from neuroute_systems.elg.network import Elg, ElgCvrp
from neuroute_systems.glop.network import Glop, GlopPartition
from neuroute_systems.invit.network import Invit, InvitCvrp
from neuroute_systems.mdam.network import Mdam, MdamCvrp
from neuroute_systems.pointerformer.network import Pointerformer

BQ, ICAM, ICAM_CVRP, PENS = 3_107_539, 2_242_446, 2_226_702, 2_842_560
CASES: list[tuple[type[nn.Module], dict[str, Any], int]] = [
    (Bq, {}, BQ),
    (BqCvrp, {}, BQ + 2 * 192 + 193),  # two more inputs and one more logit
    (Lehd, {"depth": 6, "width": 128, "heads": 8, "feed_forward": 512}, 1_431_681),  # the released model
    (Lehd, {"depth": 24, "width": 64, "heads": 8, "feed_forward": 256}, 1_251_137),  # scaling, Table 20: an FFN of 4 W
    (Dgl, {}, 807_169),  # of 840,193 in the released files, where two projections of 128 x 128 are never used
    (Pomo, {}, 1_269_760),
    (PomoCvrp, {}, 1_254_016),
    (Pointerformer, {}, 1_288_064),
    (Elg, {}, 1_274_016),
    (Elg, {"local": False}, 1_269_760),
    (ElgCvrp, {}, 1_258_304),
    (Icam, {}, ICAM),
    (IcamCvrp, {}, ICAM_CVRP),
    *((kind, {"adaptation": False}, size - 13) for kind, size in ((Icam, ICAM), (IcamCvrp, ICAM_CVRP))),
    *((kind, {"compatibility": False}, size - 1) for kind, size in ((Icam, ICAM), (IcamCvrp, ICAM_CVRP))),
    # 2.8M (pens, Section 5.1); 2.7M by Table 4.  A projection of the attention's output would make it 3.2M.
    *((Pens, {"positions": name}, PENS) for name in ("alibi", "rope", "both")),
    (Pens, {"positions": "coordinates"}, PENS + 384),
    (Pens, {"output_projection": True}, 3_174_336),
    (Pens, {"initial": "zero"}, PENS),
    (Glop, {}, 3 * 1_301_888),
    (Glop, {"shared": True}, 1_301_888),
    (GlopPartition, {}, 148_513),
    (GlopPartition, {"depth": 6}, 76_801),
    # 1.7M and 2.6M by pens, Table 4.
    (Invit, {"views": [35, 50], "action_depth": 2}, 1_718_528),
    (Invit, {"views": [35, 50], "action_depth": 4}, 2_114_560),
    (Invit, {"views": [35, 50, 65], "action_depth": 4}, 2_642_816),
    (InvitCvrp, {"views": [35, 50], "action_depth": 2}, 1_736_064),
    (InvitCvrp, {"views": [35, 50, 65], "action_depth": 2}, 2_264_576),
    (AttGcn, {}, 11_054_402),
    (Difusco, {}, 5_333_762),
    (Dimes, {}, 67_201),
    (Mdam, {}, 1_167_360),
    (MdamCvrp, {}, 1_086_336),
    (Sit, {}, 2_633_217),
    (SitCvrp, {}, 2_635_522),
    *((MvMoe, {"experts": 0, "inputs": name}, 1_254_016) for name in ("CVRP", "VRPB")),
    *((MvMoe, {"experts": 0, "inputs": name}, 1_254_144) for name in ("OVRP", "VRPL", "OVRPB", "VRPBL")),
    *((MvMoe, {"experts": 0, "inputs": name}, 1_254_272) for name in ("OVRPL", "OVRPBL")),
    *((MvMoe, {"experts": 0, "inputs": name}, 1_254_400) for name in ("VRPTW", "VRPBTW")),
    *((MvMoe, {"experts": 0, "inputs": name}, 1_254_528) for name in ("OVRPTW", "VRPLTW", "OVRPBTW", "VRPBLTW")),
    *((MvMoe, {"experts": 0, "inputs": name}, 1_254_656) for name in ("OVRPLTW", "OVRPBLTW", "all")),
    (MvMoe, {}, 3_682_176),
    (MvMoe, {"hierarchy": "step"}, 3_698_944),
    (MvMoe, {"hierarchy": "episode"}, 3_698_944),
    (MvMoe, {"experts": 8}, 6_916_480),
    (MvMoe, {"experts": 8, "hierarchy": "step"}, 6_933_248),
    (MvMoe, {"experts": 16}, 13_385_088),
    (MvMoe, {"experts": 16, "hierarchy": "step"}, 13_401_856),
    (MvMoe, {"positions": ["raw"]}, 1_258_168),
    (MvMoe, {"positions": ["dec"]}, 1_305_216),
    (MvMoe, {"positions": ["enc"]}, 3_631_616),
    (MvMoe, {"positions": ["enc0", "enc2", "enc4"]}, 2_443_136),
    (MvMoe, {"positions": ["enc2", "enc4"]}, 2_046_976),
    (MvMoe, {"positions": ["enc4", "enc5"]}, 2_046_976),
    (MvMoe, {"positions": ["raw", "enc", "dec"]}, 3_685_688),
    (MvMoe, {"method": "soft"}, 3_685_760),
    (MvMoe, {"method": "expert-choice"}, 3_682_176),
    (MvMoe, {"method": "random", "level": "problem"}, 3_682_176),
    (MvMoe, {"level": "instance", "top": 1}, 3_682_176),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "arguments", "size"), CASES, ids=str)
def test_published_sizes(kind: type[nn.Module], arguments: dict[str, Any], size: int) -> None:
    network = Network(kind=f"{kind.__module__}:{kind.__name__}", arguments=arguments)
    with torch.device("meta"):
        net = kind(**arguments)
    assert parameters(net) == counts(network).parameters == size
