"""The graph of thoughts: its nodes, its operations, and which of them are legal.

A node is a problem or a thought. A problem has some items of the whole problem, a thought is an
answer for some items. A graph is immutable: an operation returns another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

Answer = tuple[str, ...]  # the items of a solver's reply, in its order


class IllegalOperationError(ValueError):
    """An operation that the graph does not allow; the message says why."""


@dataclass(frozen=True)
class ThoughtNode:
    """A problem, or a thought about one.

    Args:
        number: Its number, from 1; numbers of dropped nodes are not given again.
        items: Indices of its items among those of the whole problem.
        made_by: The operation that made it, such as "split 1"; "" for the whole problem.
        answer: The answer of a thought; None for a problem.
        errors: Number of errors in the answer.
        refinements: Number of times that the solver was asked to correct the answer.
    """

    number: int
    items: tuple[int, ...]
    made_by: str = ""
    answer: Answer | None = None
    errors: int = 0
    refinements: int = 0

    def __str__(self) -> str:
        origin = f" = {self.made_by}" if self.made_by else ""
        kind = "problem" if self.answer is None else "thought"
        parts = [f"{self.number}{origin}: {kind} of {len(self.items)} items"]
        if self.answer is not None:
            parts.append(f"{self.errors} errors")
        if self.refinements:
            parts.append(f"{self.refinements} refinements")
        return ", ".join(parts)


@dataclass(frozen=True)
class Graph:
    """The nodes of a graph, in the order of their numbers.

    Args:
        nodes: The nodes; the first one is the whole problem.
        max_nodes: Largest number of nodes.
        next_number: Number of the next node.
    """

    nodes: tuple[ThoughtNode, ...]
    max_nodes: int
    next_number: int = 2

    @classmethod
    def of_items(cls, count: int, max_nodes: int) -> "Graph":
        """The graph of a whole problem of `count` items, without thoughts."""
        return cls((ThoughtNode(1, tuple(range(count))),), max_nodes)

    @property
    def whole(self) -> ThoughtNode:
        """The whole problem."""
        return self.nodes[0]

    @property
    def solution(self) -> ThoughtNode | None:
        """The first thought about all items without errors; None if there is none."""
        thoughts = (node for node in self.nodes if node.answer is not None and not node.errors)
        return next((node for node in thoughts if set(node.items) == set(self.whole.items)), None)

    def node(self, number: int) -> ThoughtNode:
        """The node of a number; raises `IllegalOperationError` if there is none."""
        for node in self.nodes:
            if node.number == number:
                return node
        known = ", ".join(str(node.number) for node in self.nodes)
        raise IllegalOperationError(f"there is no node {number}, only {known}")

    def problem(self, number: int) -> ThoughtNode:
        """The problem of a number; raises if the node is none, or is a thought."""
        node = self.node(number)
        if node.answer is not None:
            raise IllegalOperationError(f"node {number} is a thought, and a problem is needed")
        return node

    def thought(self, number: int) -> ThoughtNode:
        """The thought of a number; raises if the node is none, or is a problem."""
        node = self.node(number)
        if node.answer is None:
            raise IllegalOperationError(
                f"node {number} is a problem, and a thought is needed: solve it first"
            )
        return node

    def parts(self, numbers: Sequence[int]) -> Sequence[ThoughtNode]:
        """The thoughts that a merge joins; raises for fewer than two, or for a common item."""
        thoughts = [self.thought(number) for number in numbers]
        if len(thoughts) < 2:
            raise IllegalOperationError("a merge needs two thoughts or more")
        items = [item for thought in thoughts for item in thought.items]
        if len(set(items)) < len(items):
            raise IllegalOperationError("these thoughts have items in common")
        return thoughts

    def check_room(self, count: int = 1) -> None:
        """Raise if the graph has no room for `count` nodes more."""
        if len(self.nodes) + count > self.max_nodes:
            raise IllegalOperationError(
                f"the graph has {len(self.nodes)} of {self.max_nodes} nodes and no room for"
                f" {count} more: drop some first"
            )

    def split(self, number: int, parts: int) -> "Graph":
        """The graph in which a problem is split into `parts` problems, or one for each item."""
        node = self.problem(number)
        made_by = f"split {number}"
        if len(node.items) < 2:
            raise IllegalOperationError(f"node {number} has one item and cannot be split")
        if any(other.made_by == made_by for other in self.nodes):
            raise IllegalOperationError(f"node {number} is split already")
        count = min(parts, len(node.items))
        self.check_room(count)
        bounds = [i * len(node.items) // count for i in range(count + 1)]
        graph = self
        for start, end in pairwise(bounds):
            graph = graph.with_node(made_by, node.items[start:end])
        return graph

    def with_node(
        self, made_by: str, items: tuple[int, ...], answer: Answer | None = None, errors: int = 0
    ) -> "Graph":
        """The graph with one node more: a thought, or a problem if it has no answer."""
        node = ThoughtNode(self.next_number, items, made_by, answer, errors)
        return replace(self, nodes=(*self.nodes, node), next_number=self.next_number + 1)

    def refined(self, number: int, answer: Answer, errors: int) -> "Graph":
        """The graph in which a thought has another answer, unless that one has more errors."""
        old = self.thought(number)
        new = replace(old, refinements=old.refinements + 1)
        if errors <= old.errors:
            new = replace(new, answer=answer, errors=errors)
        return replace(self, nodes=tuple(new if node is old else node for node in self.nodes))

    def dropped(self, number: int) -> "Graph":
        """The graph without a node; what was made from it stays."""
        node = self.node(number)
        if node is self.whole:
            raise IllegalOperationError("node 1 is the whole problem and cannot be dropped")
        return replace(self, nodes=tuple(other for other in self.nodes if other is not node))
