"""Rules that pair siblings of a tree, with the catalogue's numbers of Agent Q."""

import pytest

from grupo.core.search_tree import Node
from grupo.core.sibling_rules import AllSiblings, BestAgainstWorst


def siblings():
    # values [0.5 * 0.8 + 0.5 * 0.6, 0.5 * 0.2 + 0.5 * 1.0] = [0.7, 0.6]
    a, b = Node("a", q=0.8, critic=0.6, visits=1), Node("b", q=0.2, critic=1.0, visits=1)
    return a, b, Node("root", children=[b, a])


def test_threshold_of_a_twentieth_gives_one_pair_and_of_a_fifth_none():
    a, b, root = siblings()
    assert list(AllSiblings(0.05).pairs(root)) == [(a, b)]
    assert list(AllSiblings(0.2).pairs(root)) == []
    assert AllSiblings().value(a) == pytest.approx(0.7)
    assert AllSiblings().value(b) == pytest.approx(0.6)


def test_siblings_of_all_nodes_are_paired_and_outcomes_alone_with_alpha_1():
    a, b, root = siblings()
    c, d = Node("c", q=0.1, visits=1), Node("d", q=0.9, visits=1)
    b.children = [c, d]
    assert list(AllSiblings(0.2, alpha=1.0).pairs(root)) == [(a, b), (d, c)]


def test_the_best_and_the_worst_of_the_best_path_are_paired():
    a, b, root = siblings()
    b.children = [Node("c", q=0.1, visits=1), Node("d", q=0.9, visits=1)]
    assert list(BestAgainstWorst().pairs(root)) == [(a, b)]
    assert BestAgainstWorst().value(a) == 0.8
