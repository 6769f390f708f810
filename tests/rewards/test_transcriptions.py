"""Similarities of transcriptions: texts, formulas, tables and rendered code."""

import numpy as np
import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import (
    EditSimilarity,
    ExactMatch,
    FormulaRenderer,
    RenderSimilarity,
    SvgRenderer,
    TableSimilarity,
    any_text,
    plain_latex,
)
from grupo.rewards.tree_edit import Tree, tree_edit_distance
from grupo.tasks.renderers import parse_path
from grupo.util.errors import ConfigError

TABLE = "<table><tr><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table>"  # 7 nodes


def score(reward, text, answer):
    return reward.score(Task("k", "?", answer), Rollout((("?", Response((), (), text=text)),)))


def table_score(text):
    return score(TableSimilarity(), text, TABLE)


def test_kitten_and_sitting_differ_by_three_of_seven_characters():
    assert score(EditSimilarity(), "kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert score(EditSimilarity(), " a  b\n", "a b") == 1.0
    assert score(EditSimilarity(), "", "ab") == 0.0


def test_latex_is_compared_without_its_spaces_and_delimiters():
    reward = EditSimilarity(normalize=plain_latex)
    assert score(reward, r"$\dfrac{1}{2} + x$", r"\frac{1}{2}+x") == 1.0
    assert score(reward, r"\frac{1}{3}", r"\frac{1}{2}") == pytest.approx(1 - 1 / 11)
    assert plain_latex(r"\pi r \cdot 2") == r"\pi r\cdot2"


def test_the_distance_of_trees_of_zhang_and_shasha():
    """The example of the paper: f(d(a c(b)) e) and f(c(d(a b)) e) are 2 edits apart."""
    a, b, e = Tree("a"), Tree("b"), Tree("e")
    first = Tree("f", (Tree("d", (a, Tree("c", (b,)))), e))
    second = Tree("f", (Tree("c", (Tree("d", (a, b)),)), e))
    assert tree_edit_distance(first, second) == tree_edit_distance(second, first) == 2.0
    assert tree_edit_distance(first, first) == 0.0
    assert tree_edit_distance(a, Tree("b", (a,))) == 1.0


def test_equal_tables_score_one_also_without_optional_tags():
    assert table_score(TABLE) == 1.0
    assert table_score("<table><tr><td>1<td>2<tr><td>3<td>4</table>") == 1.0
    assert table_score(f"Here: {TABLE}, {TABLE}") == 1.0


def test_each_cell_costs_its_distance_and_each_node_one():
    assert table_score(TABLE.replace("4", "5")) == pytest.approx(1 - 1 / 7)
    assert table_score(TABLE.replace("4", "45")) == pytest.approx(1 - 0.5 / 7)
    assert table_score(TABLE.replace("<td>4</td>", "")) == pytest.approx(1 - 1 / 7)
    assert table_score("<table><tr><td>1<td>2</table>") == pytest.approx(1 - 3 / 7)
    spanning = TABLE.replace("<td>4", '<td colspan="2">4')
    assert table_score(spanning) == pytest.approx(1 - 1 / 7)


def test_more_edits_than_nodes_score_zero_and_not_less():
    # six empty rows from two rows with two cells: 4 cells are deleted and 4 rows inserted; 7 nodes
    assert table_score("<table>" + "<tr>" * 6 + "</table>") == 0.0


def test_the_structure_alone_ignores_the_texts_of_cells():
    reward = TableSimilarity(cell_similarity=any_text)
    assert score(reward, TABLE.replace("4", "999"), TABLE) == 1.0


def test_texts_without_a_table_that_ends_score_zero():
    for text in ("", "1 2 3 4", "<table><tr><td>1", "<tr><td>1</tr>"):
        assert table_score(text) == 0.0
    with pytest.raises(ConfigError, match="a table in HTML"):
        TableSimilarity().validate_tasks([Task("k", "?", "1 2")])


def test_rendered_code_scores_its_overlap_and_a_bonus():
    reward = RenderSimilarity(SvgRenderer(4))
    answer = '<svg><rect width="4" height="4"/></svg>'
    assert score(reward, answer, answer) == 1.1
    assert score(reward, '<svg><path d="M0 4V1H4V4"/></svg>', answer) == pytest.approx(0.85)
    assert score(reward, "<svg></svg>", answer) == 0.1
    with pytest.raises(ConfigError, match="cannot be rendered"):
        reward.validate_tasks([Task("k", "?", "<svg")])


@pytest.mark.parametrize(
    "text",
    [
        "<svg",
        "<html/>",
        '<svg><rect width="a" height="1"/></svg>',
        '<svg><path d="M1 1C2 2 3 3 4 4"/></svg>',
        '<svg><path d="L1 1"/></svg>',
        '<svg><path d="M1"/></svg>',
        '<svg><path d="Z"/></svg>',
        '<svg><path d="M1 1Z3 4"/></svg>',
        '<svg><rect width="1" height="1" fill="no colour"/></svg>',
        '<svg viewBox="0 0 0 4"></svg>',
        "<svg><text>a</text></svg>",
        '<!DOCTYPE svg [<!ENTITY a "aaaa">]><svg>&a;</svg>',
    ],
)
def test_texts_that_are_no_picture_are_not_rendered(text):
    assert SvgRenderer()(text) is None


def test_a_view_box_scales_the_picture():
    pixels = SvgRenderer(4)(
        '<svg viewBox="10 10 2 2"><rect x="10" y="10" width="1" height="2"/></svg>'
    )
    assert pixels is not None
    expected = np.repeat([[0, 0, 255, 255]], 4, axis=0)
    assert np.array_equal(pixels[..., 0], expected)


def test_paths_are_absolute_or_relative():
    assert parse_path("M1 1 2 2H5v-1") == [[(1.0, 1.0), (2.0, 2.0), (5.0, 2.0), (5.0, 1.0)]]
    assert parse_path("m1 1 1 1zl1 0") == [[(1.0, 1.0), (2.0, 2.0), (2.0, 1.0)]]


def test_formulas_of_the_same_look_are_the_same_picture():
    reward = RenderSimilarity(FormulaRenderer(), valid_bonus=0.0)
    assert score(reward, "x^{2}", "x^2") == 1.0 > score(reward, "x_2", "x^2") > 0.0
    assert score(ExactMatch(), "x^{2}", "x^2") == score(reward, r"\frac{", "x^2") == 0.0
