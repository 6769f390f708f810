"""Search trees: nodes are selected by UCT or PUCT, expanded, and valued from the leaves up.

A node is a state that one step leads to. A search repeats: `select` a leaf, `expand` it, value what
it leads to, and back the value up. The tree knows nothing of rollouts, so any state will do.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import inf, log, sqrt
from typing import Generic, TypeVar

from grupo.core.component import component
from grupo.core.ranges import NonNegativeFloat, Probability
from grupo.util.errors import ConfigError

StateT = TypeVar("StateT", bound=Hashable)


@dataclass(eq=False)
class Node(Generic[StateT]):
    """A state of a search, with the values that were backed up through it.

    Args:
        state: What the step led to; siblings have different states.
        prior: Probability of the step, for PUCT.
        critic: Value that a critic gives the step.
        is_terminal: Nothing follows the state.
        children: Nodes of the next steps.
        visits: Number of values that were backed up through the node.
        q: Value of the step that leads to the state, Q: the mean of these values.
    """

    state: StateT
    prior: float = 1.0
    critic: float = 0.0
    is_terminal: bool = False
    children: "list[Node[StateT]]" = field(default_factory=list)
    visits: int = 0
    q: float = 0.0


NodeValue = Callable[[Node[StateT]], float]
Priority = Callable[[Node[StateT], Node[StateT]], float]  # of a child, given its parent
Path = Sequence[Node[StateT]]


@component
class UCT:
    """Q + c sqrt(ln N_parent / N), infinite for a node without visits. Kocsis, Szepesvari, 2006.

    Args:
        exploration: c.

    >>> UCT(1.0)(Node("a", visits=1, q=0.5), Node("root", visits=1))
    0.5
    """

    exploration: NonNegativeFloat = 1.414

    def __call__(self, node: Node[StateT], parent: Node[StateT]) -> float:
        if not node.visits:
            return inf
        return node.q + self.exploration * sqrt(log(parent.visits) / node.visits)


@component
class PUCT:
    """Q + w p sqrt(N_parent) / (1 + N), p the prior of the step. Silver et al., 2017.

    Args:
        exploration: w.

    >>> PUCT(1.0)(Node("a", prior=0.5, visits=1, q=0.5), Node("root", visits=4))
    1.0
    """

    exploration: NonNegativeFloat = 1.0

    def __call__(self, node: Node[StateT], parent: Node[StateT]) -> float:
        return node.q + self.exploration * node.prior * sqrt(parent.visits) / (1 + node.visits)


@component
class MixedValue:
    """alpha Q + (1 - alpha) critic. Source: Agent Q, Putta et al., arXiv:2408.07199.

    Args:
        alpha: Share of the backed-up value; the rest is the critic's.

    >>> MixedValue(0.5)(Node("a", q=1.0, critic=0.0))
    0.5
    """

    alpha: Probability = 0.5

    def __call__(self, node: Node[StateT]) -> float:
        return self.alpha * node.q + (1 - self.alpha) * node.critic


def backed_up(node: Node[StateT]) -> float:
    """Q, the value that was backed up to the step."""
    return node.q


@component
class CriticUCT:
    """V + c sqrt(ln N_parent / (1 + N)), V the mixture of Q and the critic's value.

    A step without visits has a finite priority, so that the critic decides which one is tried
    first. Source: Agent Q, Putta et al., arXiv:2408.07199.

    Args:
        exploration: c.
        value: The mixture V.

    >>> CriticUCT(1.0)(Node("a", visits=3, q=1.0, critic=0.5), Node("root", visits=1))
    0.75
    """

    exploration: NonNegativeFloat = 1.0
    value: MixedValue = MixedValue()

    def __call__(self, node: Node[StateT], parent: Node[StateT]) -> float:
        bonus = sqrt(log(max(1, parent.visits)) / (1 + node.visits))
        return self.value(node) + self.exploration * bonus


def select(root: Node[StateT], priority: Priority[StateT]) -> list[Node[StateT]]:
    """The path from the root to a leaf, by the child of highest priority; ties take the first."""
    path = [root]
    while path[-1].children:
        parent = path[-1]
        path.append(max(parent.children, key=lambda node: priority(node, parent)))
    return path


def expand(node: Node[StateT], children: Iterable[Node[StateT]]) -> int:
    """Give a leaf its children; those of one state are one child, whose priors are added.

    Returns:
        Number of different children.

    Raises:
        ConfigError: The node is terminal or has children.
    """
    if node.is_terminal or node.children:
        kind = "terminal" if node.is_terminal else "expanded already"
        raise ConfigError(f"search tree: {node.state!r} is {kind}. Allowed: a leaf that goes on.")
    distinct: dict[StateT, Node[StateT]] = {}
    for child in children:
        if known := distinct.get(child.state):
            known.prior += child.prior
        else:
            distinct[child.state] = child
    node.children = list(distinct.values())
    return len(node.children)


def back_up_mean(path: Path[StateT], outcome: float) -> None:
    """Count an outcome in each node of a path; Q is the mean of the outcomes through it."""
    for node in path:
        node.q += (outcome - node.q) / (node.visits + 1)
        node.visits += 1


def best_path(root: Node[StateT], value: NodeValue[StateT] = backed_up) -> list[Node[StateT]]:
    """The path from the root to a leaf by the visited child of highest value; ties take the first.

    A node whose children have no visits ends the path.
    """
    path = [root]
    while visited := [child for child in path[-1].children if child.visits]:
        path.append(max(visited, key=value))
    return path


def nodes(root: Node[StateT]) -> Iterator[Node[StateT]]:
    """All nodes of a tree, each before its children."""
    remaining = [root]
    while remaining:
        node = remaining.pop()
        yield node
        remaining += reversed(node.children)


def sibling_pairs(
    parent: Node[StateT], min_gap: float = 0.0, value: NodeValue[StateT] = backed_up
) -> list[tuple[Node[StateT], Node[StateT]]]:
    """All pairs (better, worse) of visited children whose values differ by more than `min_gap`."""
    visited = sorted((c for c in parent.children if c.visits), key=value, reverse=True)
    return [(a, b) for a, b in combinations(visited, 2) if value(a) - value(b) > min_gap]


def extreme_pairs(path: Path[StateT]) -> Iterator[tuple[Node[StateT], Node[StateT]]]:
    """The best and the worst visited child of each node of a path; none where all are equal."""
    for parent, _ in pairwise(path):
        if pairs := sibling_pairs(parent):
            yield max(pairs, key=lambda pair: pair[0].q - pair[1].q)
