"""Rules that pair siblings of a search tree: which step is preferred to which."""

from collections.abc import Iterator
from typing import Any, Protocol

from grupo.core.component import component
from grupo.core.ranges import NonNegativeFloat, Probability
from grupo.core.search_tree import (
    MixedValue,
    Node,
    backed_up,
    best_path,
    extreme_pairs,
    nodes,
    sibling_pairs,
)

Pair = tuple[Node[Any], Node[Any]]


class SiblingRule(Protocol):
    """Pairs siblings of a tree, and values them."""

    def pairs(self, root: Node[Any], /) -> Iterator[Pair]:
        """The pairs (better, worse) below a root."""
        ...

    def value(self, node: Node[Any], /) -> float:
        """The value by which siblings are compared."""
        ...


@component
class BestAgainstWorst:
    """The best and the worst sibling of each depth of the best path, by Q.

    Source: MCTS-DPO, Xie et al., arXiv:2405.00451.
    """

    def pairs(self, root: Node[Any]) -> Iterator[Pair]:
        return extreme_pairs(best_path(root))

    def value(self, node: Node[Any]) -> float:
        return backed_up(node)


@component
class AllSiblings:
    """All siblings of all nodes whose values differ by more than a threshold.

    The value is alpha Q + (1 - alpha) critic. Source: Agent Q, Putta et al., arXiv:2408.07199.

    Args:
        min_gap: The threshold theta.
        alpha: Share of the backed-up value.

    >>> siblings = [Node("a", visits=1, q=0.8, critic=0.6), Node("b", visits=1, q=0.2, critic=1.0)]
    >>> root = Node("root", children=siblings)
    >>> [(a.state, b.state) for a, b in AllSiblings(min_gap=0.05).pairs(root)]  # values 0.7, 0.6
    [('a', 'b')]
    """

    min_gap: NonNegativeFloat = 0.2
    alpha: Probability = 0.5

    def pairs(self, root: Node[Any]) -> Iterator[Pair]:
        for parent in nodes(root):
            yield from sibling_pairs(parent, self.min_gap, self.value)

    def value(self, node: Node[Any]) -> float:
        return MixedValue(self.alpha)(node)
