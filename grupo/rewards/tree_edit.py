"""The edit distance of ordered trees: Zhang and Shasha, 1989, SIAM Journal on Computing 18(6)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tree:
    """A node with its children, in order."""

    label: Any
    children: tuple["Tree", ...] = ()

    @property
    def size(self) -> int:
        """Number of nodes."""
        return 1 + sum(child.size for child in self.children)


def tree_edit_distance(
    a: Tree, b: Tree, replace_cost: Callable[[Any, Any], float] = lambda x, y: float(x != y)
) -> float:
    """The least cost of edits that turn one ordered tree into another.

    Deleting a node, whose children take its place, costs 1, as does inserting one.

    Args:
        a: A tree.
        b: The other tree.
        replace_cost: Cost of replacing the label of a node by another one.

    >>> leaf = Tree("c")
    >>> tree_edit_distance(Tree("a", (Tree("b", (leaf,)),)), Tree("a", (leaf,)))
    1.0
    """
    nodes_a, nodes_b = _postorder(a), _postorder(b)
    distances = [[0.0] * len(nodes_b) for _ in nodes_a]
    for i in _keyroots(nodes_a):
        for j in _keyroots(nodes_b):
            _fill(nodes_a, nodes_b, (i, j), distances, replace_cost)
    return distances[-1][-1]


Node = tuple[Any, int]  # a label, and the index of the leftmost leaf below in postorder


def _postorder(tree: Tree) -> Sequence[Node]:
    nodes = list[Node]()

    def visit(node: Tree) -> None:
        leftmost = len(nodes)
        for child in node.children:
            visit(child)
        nodes.append((node.label, leftmost))

    visit(tree)
    return nodes


def _keyroots(nodes: Sequence[Node]) -> Sequence[int]:
    """The last node in postorder of those with the same leftmost leaf."""
    return sorted({leftmost: i for i, (_, leftmost) in enumerate(nodes)}.values())


def _fill(
    nodes_a: Sequence[Node],
    nodes_b: Sequence[Node],
    roots: tuple[int, int],
    distances: list[list[float]],
    replace_cost: Callable[[Any, Any], float],
) -> None:
    """Fill in distances of subtrees on the paths from two roots to their leftmost leaves."""
    (root_a, root_b), (start_a, start_b) = roots, (nodes_a[roots[0]][1], nodes_b[roots[1]][1])
    rows, columns = root_a - start_a + 2, root_b - start_b + 2
    # forests[x][y]: distance of the forests of the first x and y nodes from the leftmost leaves
    forests = [[float(x + y) for y in range(columns)] for x in range(rows)]
    for x in range(1, rows):
        label_a, left_a = nodes_a[start_a + x - 1]
        for y in range(1, columns):
            label_b, left_b = nodes_b[start_b + y - 1]
            best = min(forests[x - 1][y], forests[x][y - 1]) + 1
            if left_a == start_a and left_b == start_b:
                best = min(best, forests[x - 1][y - 1] + replace_cost(label_a, label_b))
                distances[start_a + x - 1][start_b + y - 1] = best
            else:
                subtree = distances[start_a + x - 1][start_b + y - 1]
                best = min(best, forests[left_a - start_a][left_b - start_b] + subtree)
            forests[x][y] = best
