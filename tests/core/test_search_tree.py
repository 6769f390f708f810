"""Search trees: selection, expansion, back-up, best paths and siblings, by hand."""

from math import inf, log, sqrt

import pytest

from grupo.core.search_tree import (
    PUCT,
    UCT,
    CriticUCT,
    MixedValue,
    Node,
    back_up_mean,
    best_path,
    expand,
    extreme_pairs,
    nodes,
    select,
    sibling_pairs,
)
from grupo.util.errors import ConfigError


def states(nodes):
    return [node.state for node in nodes]


def test_puct_adds_the_prior_over_visits():
    # Q + w p sqrt(N_parent) / (1 + N) = 0.5 + 0.4 * 4 / 4
    node = Node("a", prior=0.4, visits=3, q=0.5)
    assert PUCT(1.0)(node, Node("root", visits=16)) == pytest.approx(0.9)


def test_uct_prefers_nodes_without_visits_and_then_rare_ones():
    parent = Node("root", visits=4)
    assert UCT(2.0)(Node("a"), parent) == inf
    assert UCT(2.0)(Node("a", visits=3, q=0.25), parent) == pytest.approx(
        0.25 + 2 * sqrt(log(4) / 3)
    )
    assert UCT(0.0)(Node("a", visits=1, q=0.25), parent) == 0.25


def test_mean_value_is_the_mean_outcome_through_a_node():
    # four rollouts through each child: 3 of 4 succeed, and 1 of 4
    good, bad = Node("good"), Node("bad")
    root = Node("root", children=[good, bad])
    for node, outcomes in ((good, (1, 1, 0, 1)), (bad, (0, 1, 0, 0))):
        for outcome in outcomes:
            back_up_mean([root, node], outcome)
    assert (good.q, bad.q, root.q) == (0.75, 0.25, 0.5)
    assert (good.visits, bad.visits, root.visits) == (4, 4, 8)


def test_siblings_are_paired_by_the_mixture_with_a_critic():
    # Q = [0.5 * 0.8 + 0.5 * 0.6, 0.5 * 0.2 + 0.5 * 1.0] = [0.7, 0.6]
    a, b = Node("a", q=0.8, critic=0.6, visits=1), Node("b", q=0.2, critic=1.0, visits=1)
    value = MixedValue(0.5)
    assert [value(a), value(b)] == pytest.approx([0.7, 0.6])
    root = Node("root", children=[b, a])
    assert sibling_pairs(root, 0.05, value) == [(a, b)]
    assert sibling_pairs(root, 0.2, value) == []


def test_all_pairs_above_the_gap_are_found_and_nodes_without_visits_are_none():
    a, b, c = (Node(s, q=q, visits=1) for s, q in zip("abc", (1.0, 0.5, 0.0), strict=True))
    root = Node("root", children=[c, Node("d", q=5.0), a, b])
    assert sibling_pairs(root) == [(a, b), (a, c), (b, c)]
    assert sibling_pairs(root, 0.5) == [(a, c)]


def test_selection_follows_the_highest_priority_and_ties_take_the_first():
    a, b = Node("a", visits=1, q=0.2), Node("b", visits=1, q=0.2)
    deep = Node("deep")
    root = Node("root", visits=2, children=[a, b])
    a.children = [deep]
    assert states(select(root, UCT())) == ["root", "a", "deep"]
    b.q = 0.3
    assert states(select(root, UCT())) == ["root", "b"]


def test_alike_children_are_one_child_and_their_priors_add_up():
    root = Node("root")
    assert expand(root, [Node("a", prior=0.25), Node("a", prior=0.5), Node("b", prior=0.125)]) == 2
    assert [(c.state, c.prior) for c in root.children] == [("a", 0.75), ("b", 0.125)]
    alike = Node("root")
    assert expand(alike, [Node("a"), Node("a")]) == 1
    back_up_mean([alike, alike.children[0]], 1.0)
    assert sibling_pairs(alike) == []


def test_terminal_and_expanded_nodes_are_not_expanded():
    with pytest.raises(ConfigError, match=r"'end' is terminal. Allowed: a leaf"):
        expand(Node("end", is_terminal=True), [Node("a")])
    with pytest.raises(ConfigError, match="'root' is expanded already"):
        expand(Node("root", children=[Node("a")]), [Node("b")])


def test_best_path_has_visited_nodes_only_and_gives_the_extreme_siblings():
    best, middle, worst = (
        Node(s, q=q, visits=1) for s, q in zip("bmw", (1.0, 0.5, 0.0), strict=True)
    )
    root = Node("root", visits=3, children=[middle, worst, best, Node("new", q=3.0)])
    best.children = [Node("x", q=9.0)]
    path = best_path(root)
    assert states(path) == ["root", "b"]
    assert list(extreme_pairs(path)) == [(best, worst)]


def test_search_finds_the_one_rewarded_leaf_of_a_binary_tree():
    def outcome(state):
        return float(state == "101")

    root = Node("")
    for _ in range(60):
        path = select(root, UCT())
        leaf = path[-1]
        if leaf.visits and not leaf.is_terminal:
            expand(leaf, [Node(leaf.state + s, is_terminal=len(leaf.state) == 2) for s in "01"])
            path.append(leaf.children[0])
        back_up_mean(path, outcome(path[-1].state))
    assert states(best_path(root)) == ["", "1", "10", "101"]


def test_priority_of_agent_q_mixes_the_critic_and_is_finite_without_visits():
    # 0.5 * 0.8 + 0.5 * 0.6 + 2 sqrt(ln 4 / (1 + 3))
    priority = CriticUCT(2.0, MixedValue(0.5))
    node = Node("a", q=0.8, critic=0.6, visits=3)
    assert priority(node, Node("root", visits=4)) == pytest.approx(0.7 + 2 * sqrt(log(4) / 4))
    assert priority(Node("b", critic=0.6), Node("root")) == pytest.approx(0.3)


def test_nodes_are_listed_before_their_children():
    root = Node("root", children=[Node("a", children=[Node("aa")]), Node("b")])
    assert states(nodes(root)) == ["root", "a", "aa", "b"]


def test_a_chain_of_any_depth_is_walked():
    root = node = Node(0)
    for state in range(1, 5_000):
        node.children = [Node(state)]
        (node,) = node.children
    assert states(nodes(root)) == list(range(5_000))
