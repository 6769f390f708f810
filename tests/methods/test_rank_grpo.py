"""Rank-GRPO: hand-computed advantages of two lists of three items."""

from math import exp, log2, sqrt

import pytest
import torch

from grupo.methods.rank_grpo import RankAdvantage, discounted_future_hits, own_hits, rank_grpo
from grupo.testing.batches import make_batch, perturb_logp


def lists(hits, turn, **more):
    return make_batch(
        group=[0] * len(hits), length=[4] * len(hits), signals={"step/hit": hits}, turn=turn, **more
    )


def test_item_return_is_own_gain_or_discounted_gain_from_rank():
    hits = torch.tensor([[1.0, 0.0, 1.0]])
    assert own_hits(hits).tolist() == [[1, 0, 1]]
    # discounts 1 / log2(2), 1 / log2(3), 1 / log2(4): 1 + 1/2, 1/2, 1/2
    assert discounted_future_hits(hits).tolist() == [[1.5, 0.5, 0.5]]
    assert discounted_future_hits(torch.tensor([[0.0, 1.0]])).tolist()[0] == pytest.approx(
        [1 / log2(3)] * 2
    )


def test_items_are_compared_at_equal_rank():
    batch = lists([[1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0]], [[0, 0, 1, 2], [0, 1, 1, 2]])
    # hits [1, 0, 1] and [0, 1, 1]: ranks 0 and 1 differ by 1, std sqrt(1/2), rank 2 does not
    A = 0.5 / (sqrt(0.5) + 1e-4)
    assert RankAdvantage()(batch.reward, batch).tolist() == [
        pytest.approx([A, A, -A, 0.0]),
        pytest.approx([-A, A, A, 0.0]),
    ]


def test_missing_item_counts_as_miss():
    batch = lists([[1.0, 1.0, 1.0, 1.0], [0.0] * 4], [[0, 0, 1, 1], [0, 0, 0, 0]])
    A = 0.5 / (sqrt(0.5) + 1e-4)
    assert RankAdvantage()(batch.reward, batch)[0].tolist() == pytest.approx([A] * 4)


def test_single_list_has_zero_advantage():
    batch = lists([[1.0, 0.0, 1.0, 1.0]], [[0, 1, 2, 3]])
    assert RankAdvantage()(batch.reward, batch).tolist() == [[0.0] * 4]


def test_item_ratio_is_geometric_mean_of_its_actions():
    batch = lists([[0.0] * 4], [[0, 0, 1, 1]]).with_advantage(lambda x, _: x + 1)
    pi = perturb_logp(batch, [[0.2, -0.1, 0.01, 0.01]])
    loss = rank_grpo(kl_coef=0.0).loss(pi, batch)
    assert loss[0, :2].tolist() == pytest.approx([-exp(0.05)] * 2)  # (0.2 - 0.1) / 2
    assert loss[0, 2:].tolist() == pytest.approx([-exp(0.01)] * 2)


HITS = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]])


def test_discounted_hits_match_the_authors_code():
    # yaochenzhu/Rank-GRPO @ 0808d82, libs/reward_funcs.py, reward_func_log_decay on HITS
    R = [[1.5, 0.5, 0.5], [0.5, 0.5, 0.5], [1.130929754, 1.130929754, 0.5]]
    assert discounted_future_hits(HITS).tolist() == [pytest.approx(row, rel=1e-5) for row in R]


def test_defaults_match_reference_implementation():
    method = rank_grpo()
    assert method.sampler.group_size == 8
    assert (method.loss.left.clip_low, method.loss.left.clip_high) == (0.06, 0.08)
    assert method.loss.right.factor == 1e-3
    assert method.requires.all_signals == {"step/hit", "logp@ref"}
