"""TEDS: the similarity of tables in HTML by the edit distance of their trees.

Zhong, ShafieiBavani and Jimeno Yepes, 2019, arXiv:1911.10683.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, whole_text
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, reference_text
from grupo.rewards.edit_similarity import edit_similarity, single_spaces
from grupo.rewards.tree_edit import Tree, tree_edit_distance
from grupo.util.errors import ConfigError

MAX_CHARS = 10_000
MAX_NODES = 400  # of an answer's table, so that the distance takes seconds at most
CELLS = ("td", "th")
DEPTHS = {"table": 0, "thead": 1, "tbody": 1, "tfoot": 1, "tr": 2, "td": 3, "th": 3}


@dataclass(frozen=True)
class TableNode:
    """A node of a table: its tag, the cells that it spans, and the text of a cell."""

    tag: str
    spans: tuple[str, str] = ("1", "1")
    text: str = ""


@dataclass
class _OpenNode:
    tag: str
    spans: tuple[str, str]
    text: list[str] = field(default_factory=list)
    children: list[Tree] = field(default_factory=list)

    def closed(self) -> Tree:
        text = single_spaces("".join(self.text)) if self.tag in CELLS else ""
        tag = "td" if self.tag in CELLS else self.tag
        return Tree(TableNode(tag, self.spans, text), tuple(self.children))


class _TableParser(HTMLParser):
    """Reads the first table; end tags that HTML allows to omit may be omitted."""

    def __init__(self) -> None:
        super().__init__()
        self.open = list[_OpenNode]()
        self.table: Tree | None = None

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if self.table or tag not in DEPTHS or bool(self.open) != (tag != "table"):
            return
        self._close(DEPTHS[tag])
        values = {name: value or "1" for name, value in attrs}
        spans = (values.get("colspan", "1"), values.get("rowspan", "1"))
        self.open.append(_OpenNode(tag, spans))

    def handle_endtag(self, tag: str) -> None:
        if tag in [node.tag for node in self.open]:
            self._close(DEPTHS[tag])

    def handle_data(self, data: str) -> None:
        if self.open:
            self.open[-1].text.append(data)

    def _close(self, depth: int) -> None:
        """Close the open nodes at this depth and deeper."""
        while self.open and DEPTHS[self.open[-1].tag] >= depth:
            tree = self.open.pop().closed()
            if self.open:
                self.open[-1].children.append(tree)
            else:
                self.table = tree


def parse_table(html: str) -> Tree | None:
    """The tree of the first table of a text; None if there is none, or one that does not end.

    Tags inside cells are ignored, and header cells are cells.

    >>> tree = parse_table("<table><tr><td>3<td>a b</table>")
    >>> [cell.label.text for cell in tree.children[0].children]
    ['3', 'a b']
    """
    parser = _TableParser()
    parser.feed(html)
    parser.close()
    return parser.table


def teds(
    table: Tree, truth: Tree, cell_similarity: Callable[[str, str], float] = edit_similarity
) -> float:
    """1 - tree edit distance / number of nodes of the larger table, at least 0.

    Two trees may be more edits apart than the larger one has nodes.

    Args:
        table: The tree of a table.
        truth: The tree of the true table.
        cell_similarity: Similarity of two cells' texts, from 0 to 1; 1 - it is the cost of
            replacing one by the other.

    >>> a, b = (parse_table(f"<table><tr><td>{x}</td></tr></table>") for x in ("12", "13"))
    >>> round(teds(a, b), 3)  # 1 - 0.5 / 3
    0.833
    """

    @cache
    def replace_cost(x: TableNode, y: TableNode) -> float:
        if (x.tag, x.spans) != (y.tag, y.spans):
            return 1.0
        return 1 - cell_similarity(x.text, y.text) if x.text != y.text else 0.0

    distance = tree_edit_distance(table, truth, replace_cost)
    return max(0.0, 1 - distance / max(table.size, truth.size))


def any_text(text: str, truth: str) -> float:
    """1: texts of cells do not count, as in TEDS-S.

    >>> any_text("3", "4")
    1.0
    """
    return 1.0


@component
class TableSimilarity(PerRolloutReward):
    """TEDS of the answer's first table in HTML and the reference answer's, from 0 to 1.

    An answer without a table that ends scores 0. With `any_text` only the structure counts.

    Args:
        extract: Finds the table in the rollout's text.
        cell_similarity: Similarity of two cells' texts, from 0 to 1.

    >>> from grupo.core.types import Response
    >>> texts = ("<table><tr><td>4</td></tr></table>", "<table><tr><td>3<td>5</table>", "3")
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> scores = TableSimilarity()(Task("k", "?", "<table><tr><td>3</td></tr></table>"), rollouts)
    >>> [round(score, 3) for score in scores]
    [0.667, 0.75, 0.0]
    """

    extract: Extractor = whole_text
    cell_similarity: Callable[[str, str], float] = edit_similarity

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        table = parse_table(text) if text and len(text) <= MAX_CHARS else None
        if table is None or table.size > MAX_NODES:
            return 0.0
        return teds(table, reference_table(task), self.cell_similarity)

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose reference answer is no table."""
        for task in tasks:
            reference_table(task)


def reference_table(task: Task) -> Tree:
    """The tree of the reference answer; raises `ConfigError` if it is no table."""
    table = parse_table(reference_text(task))
    if table is None:
        raise ConfigError(
            f"tasks: {task.location or task.key}: the reference answer"
            f" {str(task.reference_answer)[:80]!r}. Allowed: a table in HTML."
        )
    return table
