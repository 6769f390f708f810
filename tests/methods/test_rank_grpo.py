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
ITEMS = [[0, 0, 1, 1, 1, 2], [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2]]


def reference_batch():
    marks = HITS.gather(1, torch.tensor(ITEMS)).tolist()
    return make_batch(group=[0] * 3, length=[6] * 3, signals={"step/hit": marks}, turn=ITEMS)


def test_matches_reference_implementation():
    # yaochenzhu/Rank-GRPO @ 0808d82, libs/trl/rank_grpo_trainer.py, the advantages of items in
    # _generate_and_score_completions without shaping of lengths; rewards are HITS and what
    # reward_func_log_decay of libs/reward_funcs.py makes of them; inputs as above
    batch = reference_batch()
    hit, no = 1.154500573, -0.5772502865
    assert RankAdvantage()(batch.reward, batch).tolist() == [
        pytest.approx([hit, hit, no, no, no, 0.0], rel=1e-5),
        pytest.approx([no] * 5 + [0.0], rel=1e-5),
        pytest.approx([no, no, hit, hit, 0.0, 0.0], rel=1e-5),
    ]
    R = [[1.5, 0.5, 0.5], [0.5, 0.5, 0.5], [1.130929754, 1.130929754, 0.5]]
    assert discounted_future_hits(HITS).tolist() == [pytest.approx(row, rel=1e-5) for row in R]
    first = [0.902279687, -1.074857036, 0.1725773493]
    no, hit = -0.5771918164, 1.154383633
    assert RankAdvantage(discounted_future_hits)(batch.reward, batch).tolist() == [
        pytest.approx([first[0]] * 2 + [no] * 3 + [0.0], rel=1e-5),
        pytest.approx([first[1]] * 3 + [no] * 2 + [0.0], rel=1e-5),
        pytest.approx([first[2]] * 2 + [hit] * 2 + [0.0] * 2, rel=1e-5),
    ]


def test_loss_matches_reference_implementation():
    # the same file, the per-token loss of _compute_loss at importance_sampling_level "item"
    method = rank_grpo(kl_coef=0.0)
    batch = reference_batch().with_advantage(method.advantage)
    moves = [
        [0.2, -0.1, 0.01, 0.02, -0.03, -0.2],
        [0.05, 0.0, -0.04, 0.3, 0.1, 0.07],
        [-0.1, -0.08, 0.0, 0.02, 0.04, 0.01],
    ]
    loss = method.loss(perturb_logp(batch, moves), batch)
    assert loss.tolist() == [
        pytest.approx([-1.213693083] * 2 + [0.5772502865] * 3 + [0.0], rel=1e-5),
        pytest.approx([0.5791776646] * 3 + [0.7050550921] * 2 + [0.0], rel=1e-5),
        pytest.approx([0.5426152693] * 2 + [-1.166103497] * 2 + [0.0] * 2, rel=1e-5),
    ]


def test_defaults_match_reference_implementation():
    method = rank_grpo()
    assert method.sampler.group_size == 8
    assert (method.loss.left.clip_low, method.loss.left.clip_high) == (0.06, 0.08)
    assert method.loss.right.factor == 1e-3
    assert method.required_signals == {"step/hit", "logp@ref"}
