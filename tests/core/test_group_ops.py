from math import exp, inf, log, sqrt

import pytest
import torch

from grupo.core import group_ops

GROUP = torch.tensor([0, 1, 0, 1, 0, 2])  # interleaved: {1, 4, 7}, {2, 6} and a group of one
X = torch.tensor([1.0, 2.0, 4.0, 6.0, 7.0, 9.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        (group_ops.count, [3, 2, 3, 2, 3, 1]),
        (group_ops.sum, [12, 8, 12, 8, 12, 9]),
        (group_ops.mean, [4, 4, 4, 4, 4, 9]),  # 12 / 3, 8 / 2, 9 / 1
        (
            group_ops.leave_one_out_mean,
            [5.5, 6, 4, 2, 2.5, 9],
        ),  # (4 + 7) / 2, 6, (1 + 7) / 2, 2, ...
        (group_ops.var, [9, 8, 9, 8, 9, 0]),  # (9 + 0 + 9) / 2, (4 + 4) / 1, a group of one
        (group_ops.std, [3, sqrt(8), 3, sqrt(8), 3, 0]),
        (group_ops.population_std, [sqrt(6), 2, sqrt(6), 2, sqrt(6), 0]),  # 18 / 3, 8 / 2
        (group_ops.max, [7, 6, 7, 6, 7, 9]),
        (group_ops.min, [1, 2, 1, 2, 1, 9]),
        (group_ops.median, [4, 4, 4, 4, 4, 9]),  # the middle one; halfway between 2 and 6
        (group_ops.rank, [0, 0, 1, 1, 2, 0]),
        (group_ops.count_equal, [1, 1, 1, 1, 1, 1]),
        (group_ops.entropy, [log(3), log(2), log(3), log(2), log(3), 0]),
    ],
)
def test_reductions_return_the_value_of_each_rollout_s_group(reduction, expected):
    assert reduction(X, GROUP).tolist() == pytest.approx(expected, abs=1e-12)


def test_equal_values_share_their_mean_rank():
    ranks = group_ops.rank(torch.tensor([2.0, 1.0, 2.0, 2.0]), torch.zeros(4, dtype=torch.long))
    assert ranks.tolist() == [2.0, 0.0, 2.0, 2.0]  # ranks 1, 2 and 3, shared


def test_mean_where_averages_the_kept_rollouts_of_each_group():
    keep = torch.tensor([True, False, True, False])
    x, group = torch.tensor([1.0, 5.0, 2.0, 7.0]), torch.tensor([0, 0, 0, 1])
    assert group_ops.mean_where(keep, x, group).tolist() == [1.5, 1.5, 1.5, 0.0]  # none kept: 0


def test_entropy_is_of_the_frequencies_of_values():
    x, group = torch.tensor([3.0, 3.0, 3.0, -1.0, 3.0]).double(), torch.tensor([0, 0, 0, 0, 1])
    assert group_ops.count_equal(x, group).tolist() == [3, 3, 3, 1, 1]
    H = -(3 / 4 * log(3 / 4) + 1 / 4 * log(1 / 4))
    assert group_ops.entropy(x, group).tolist() == pytest.approx([H] * 4 + [0])


def test_lowest_share_counts_within_groups_and_equal_values_share():
    x, group = torch.tensor([1.0, 2.0, 2.0, 3.0, 5.0]), torch.tensor([0, 0, 0, 0, 1])
    n = torch.tensor([2.0, 2.0, 2.0, 2.0, 0.0])
    assert group_ops.lowest_share(x, n, group).tolist() == [1, 0.5, 0.5, 0, 0]
    assert group_ops.lowest_share(x, 9, group).tolist() == [1] * 5
    renumbered = group_ops.lowest_share(x, n, 7 - 3 * group)
    assert renumbered.tolist() == [1, 0.5, 0.5, 0, 0]


def test_lowest_share_counts_weights():
    x, group = torch.tensor([3.0, 2.0, 2.0, 1.0]), torch.zeros(4, dtype=torch.long)
    weight = torch.tensor([0.5, 1.0, 1.0, 1.0])
    assert group_ops.lowest_share(-x, 1.5, group, weight).tolist() == [1.0, 0.5, 0.5, 0.0]
    zeros = torch.tensor([1.0, 0.0, 1.0, 0.0])
    assert group_ops.lowest_share(x, 1, group, zeros)[[0, 2]].tolist() == [0.0, 1.0]


def test_max_variance_share_selects_the_extremes():
    x = torch.tensor([9.0, 2.0, 0.0, 1.0, -2.0, -1.0, 7.0]).double()
    group = torch.tensor([1, 0, 0, 0, 0, 0, 1])
    # of 2, 1, 0, -1, -2 both {2, 1, -2} and {2, -1, -2} have the largest variance: the first wins
    assert group_ops.max_variance_share(x, 3, group)[1:6].tolist() == [1, 0, 1, 1, 0]


def test_logsumexp_is_the_log_of_the_sum_of_exponentials():
    x = torch.tensor([log(2.0), log(6.0), 1000.0, 1000.0], dtype=torch.float64)
    result = group_ops.logsumexp(x, torch.tensor([0, 0, 1, 1]))
    assert result.tolist() == pytest.approx([log(8.0)] * 2 + [1000 + log(2.0)] * 2)


def test_logsumexp_of_minus_infinities_is_minus_infinity():
    result = group_ops.logsumexp(torch.tensor([-inf, -inf]), torch.tensor([0, 0]))
    assert result.tolist() == [-inf, -inf]


def test_gradient_of_logsumexp_is_a_softmax():
    x = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    group_ops.logsumexp(x, torch.tensor([0, 0]))[0].backward()
    assert x.grad is not None
    assert x.grad.tolist() == pytest.approx([1 / (1 + exp(1)), exp(1) / (1 + exp(1))])


def test_group_labels_may_have_gaps():
    x, group = torch.tensor([1.0, 3.0, 5.0]), torch.tensor([4, 4, 1])
    for reduction in (group_ops.mean, group_ops.median):
        assert reduction(x, group).tolist() == [2.0, 2.0, 5.0]


REDUCTIONS = (
    group_ops.mean,
    group_ops.max,
    group_ops.median,
    group_ops.rank,
    group_ops.entropy,
    group_ops.logsumexp,
)


def test_empty_input_gives_empty_output():
    x, group = torch.zeros(0), torch.zeros(0, dtype=torch.long)
    for reduction in REDUCTIONS:
        assert reduction(x, group).shape == (0,)
