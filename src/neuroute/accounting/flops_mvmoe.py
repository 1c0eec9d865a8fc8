"""Parameters and floating-point operations of MVMoE, POMO-MTL and POMO for 16 VRPs, counted as in `flops_baselines`."""

from collections.abc import Sequence
from dataclasses import dataclass

from neuroute.networks.mvmoe_shape import ALL, POSITIONS, Inputs, inputs_of, places

NORM_PARAMETERS = {"instance": 2, "batch": 2, "batch-untracked": 2, "layer": 2}  # of a channel


@dataclass(frozen=True)
class Mvmoe:
    """An `MvMoe` by its arguments."""

    depth: int = 6
    width: int = 128
    heads: int = 8
    feed_forward: int = 512
    experts: int = 4
    top: int = 2
    positions: Sequence[str] = POSITIONS
    method: str = "input-choice"
    level: str = "node"
    decoder_method: str | None = None
    hierarchy: str = "none"
    norm: str = "instance"
    inputs: str = ALL

    # -- parameters ---------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> int:
        """1,254,656 of POMO-MTL, 3,682,176 of MVMoE/4E, 3,698,944 of MVMoE/4E-L."""
        return self._parameters(self.experts)

    @property
    def active_parameters(self) -> int:
        """Those that a token passes: k experts of each mixture.  2,068,608 of MVMoE/4E."""
        return self._parameters(self.top)

    def _parameters(self, counted: int) -> int:
        """Of experts, so many are counted.

        Layers: 4 W^2 + W for attention, 2 W F + W + F for an FFN, the norms.  Outside: (f + 4) W for the embeddings, f
        the numbers that are known of a customer; W^2 + W d of the context; 2 W^2 for keys and values; W^2 + W.
        """
        w, f = self.width, self._features
        layers = self.depth * (4 * w**2 + w) + 2 * self.depth * self._norm
        for number in range(self.depth):
            layers += self._held(f"enc{number}", w, 2 * w * self.feed_forward + w + self.feed_forward, counted)
        embedding = self._held("raw", 2, 3 * w, counted) + self._held("raw", f, (f + 1) * w, counted)
        combine = self._held("dec", w, w**2 + w, counted)
        if self.experts and self.hierarchy != "none":
            combine += w**2 + w + (0 if self.hierarchy == "random" else 2 * w)
        return layers + embedding + w * (w + len(self._inputs.known)) + 2 * w**2 + combine

    def _held(self, place: str, inputs: int, one: int, counted: int) -> int:
        """Of what is at a place: `one` parameters, or those of so many experts and of their gate."""
        if place not in self._places:
            return one
        soft = self._method(place) == "soft"
        return counted * one + inputs * self.experts * (1 + (self.top if soft else 1))

    @property
    def _norm(self) -> int:
        return 1 if self.norm == "rezero" else NORM_PARAMETERS.get(self.norm, 0) * self.width

    # -- operations ---------------------------------------------------------------------------------------------

    def encoder_flops(self, nodes: int, *, matmul_only: bool = False) -> int:
        """The embeddings, the layers, and what all decisions share (6 W^2 n), of one instance with its depot.

        A layer: 8 W^2 n for Q, K, V and output, 4 W n^2 for attention, and 4 W F for each row of an FFN.  Noise, which
        is for training, and norms are not counted.
        """
        w, n = self.width, nodes
        row = 4 * w * self.feed_forward + (0 if matmul_only else self.feed_forward)
        embedding = self._at("raw", 1, 2, w, 4 * w) + self._at("raw", n - 1, self._features, w, 2 * self._features * w)
        attention = 8 * w**2 * n + 4 * w * n**2 + (0 if matmul_only else self.heads * n**2)
        feeds = sum(self._at(f"enc{number}", n, w, w, row) for number in range(self.depth))
        return embedding + self.depth * attention + feeds + 6 * w**2 * n

    def decision_flops(self, nodes: int, tours: int = 1, *, sparse: bool = True, matmul_only: bool = False) -> int:
        """One decision of each of so many tours of one instance.

        A tour: 2 W d of what is known of it, 4 W n for attention, 2 W n for the logits, 2 W^2 for each row of a
        projection.  sparse: whether a hierarchical gate, 4 W, sends a step to the experts.
        """
        w, n = self.width, nodes
        each = 2 * w * len(self._inputs.known) + 6 * w * n + (0 if matmul_only else self.heads * n + n)
        light = bool(self.experts) and self.hierarchy != "none"
        combine = self._at("dec", tours, w, w, 2 * w**2) if sparse or not light else tours * 2 * w**2
        return tours * each + combine + (4 * w if light and self.hierarchy != "random" else 0)

    def _at(self, place: str, tokens: int, inputs: int, outputs: int, row: int) -> int:
        """Of tokens of one instance at a place: a row of what is there takes `row` FLOPs."""
        if place not in self._places:
            return tokens * row
        method, units = self._method(place), tokens if self.level == "node" else 1
        gate, slots = 2 * inputs * self.experts * units, self.experts * self.top
        if method == "random":
            return tokens * self.top * row
        if method == "expert-choice":
            taken = self.experts * max(1, units * self.top // self.experts)
            return gate + taken * (tokens // units) * row
        if method == "soft":
            mixing = 2 * slots * tokens * (inputs + outputs)
            return gate * self.top + mixing + slots * (tokens // units) * row
        return gate + tokens * self.top * row

    # -- what the arguments mean --------------------------------------------------------------------------------

    @property
    def _places(self) -> set[str]:
        return places(self.positions, self.depth) if self.experts else set()

    def _method(self, place: str) -> str:
        return (self.decoder_method or self.method) if place == "dec" else self.method

    @property
    def _inputs(self) -> Inputs:
        return inputs_of(self.inputs)

    @property
    def _features(self) -> int:
        return 5 if self._inputs.windows else 3
