"""How many instances and moves are learnt from together by reinforcement, within a budget of memory.

Half of it is for the encoder's graph and for solutions while they are sampled, half for the decisions' graphs.
"""

from dataclasses import dataclass

LEARNING_BYTES = 128  # of a decision and a node while it is learnt from
GRAPH_BYTES, GRAPH_CHANNEL_BYTES = 32, 64  # of a decision that is kept to be learnt from: of each node, each channel
ENCODED_BYTES = 80  # of a token's channel that a decision encodes anew
# Nodes of the decisions that are learnt from together: enough to keep the device busy; on a CPU more of them bring
# cache misses only.
MAX_NODES_PER_BATCH = {"cpu": 1 << 19, "cuda": 1 << 27}
LEAST_NODES = 1 << 15  # of them that keep a CPU busy


@dataclass(frozen=True)
class Budget:
    """Of instances with so many nodes, solutions and, at most, moves of each of these.

    width: channels; encoded: tokens, times layers, that each decision encodes anew.
    """

    nodes: int
    starts: int
    moves: int
    width: int
    encoded: int
    memory_gb: float
    device: str

    @property
    def graphs(self) -> int:
        """Instances whose whole constructions keep their graphs: one pass is enough for so many."""
        each = GRAPH_BYTES * self.nodes + (GRAPH_CHANNEL_BYTES + ENCODED_BYTES * self.encoded) * self.width
        return int(self._half / (self.starts * self.moves * each))

    def instances(self, count: int, each: float) -> int:
        """How many of so many instances are in hand at a time, of `each` bytes besides the decisions' graphs.

        On a CPU they may be as few as one pass takes, if they keep it busy.
        """
        fit = max(1, int(min(self._half / each, self._most / (self.starts * self.nodes))))
        busy = self.device == "cpu" and self.graphs * self.starts * self.nodes >= LEAST_NODES
        return min(fit, self.graphs) if busy and self.graphs < count else fit

    def moves_of(self, instances: int) -> int:
        """Moves of so many instances that are learnt from together where one pass is too much."""
        decisions = instances * self.starts
        each = LEARNING_BYTES * self.nodes + (GRAPH_CHANNEL_BYTES + ENCODED_BYTES * self.encoded) * self.width
        fit = self._half / (decisions * each)
        return max(1, int(min(fit, self._most / (decisions * (self.nodes + self.encoded)))))

    @property
    def _half(self) -> float:
        return self.memory_gb * 1e9 / 2

    @property
    def _most(self) -> int:
        return MAX_NODES_PER_BATCH[self.device]
