from dataclasses import replace
from math import exp

import pytest
import torch

from grupo.algo import ratios
from grupo.algo.token_level import row_max, row_sum
from grupo.core.requires import merged_requires
from grupo.testing.batches import make_batch, perturb_logp

BATCH = make_batch(group=[0, 0], length=[3, 2])
BATCH = replace(BATCH, turn=torch.tensor([[0, 1, 1], [0, 0, 0]]))
PI = perturb_logp(BATCH, [[0.3, -0.1, 0.4], [0.2, 0.6, 9.0]])  # 9: padding


def test_token_ratio_is_1_where_masked():
    assert ratios.token(PI, BATCH).flatten().tolist() == pytest.approx(
        [exp(0.3), exp(-0.1), exp(0.4), exp(0.2), exp(0.6), 1.0]
    )


def test_sequence_ratio_is_the_geometric_mean_of_the_row():
    mean = [(0.3 - 0.1 + 0.4) / 3, (0.2 + 0.6) / 2]
    assert ratios.sequence(PI, BATCH).flatten().tolist() == pytest.approx([*map(exp, mean)])


def test_turn_ratio_is_the_geometric_mean_of_the_turn():
    second = exp((-0.1 + 0.4) / 2)
    assert ratios.turn(PI, BATCH).flatten().tolist() == pytest.approx(
        [exp(0.3), second, second, exp(0.4), exp(0.4), 1.0]
    )


def test_ratios_have_no_gradient_through_padding():
    components = (
        ratios.product,
        ratios.SequenceTokenRatio(),
        ratios.CappedRatio(9.0),
        ratios.ClippedRatio(0.9, 9.0),
        ratios.RatioTo("sampler"),
    )
    for ratio in (ratios.token, ratios.sequence, ratios.turn, *components):
        pi = perturb_logp(BATCH, [[0.3, -0.1, 0.4], [0.2, 0.6, 9.0]])
        ratio(pi, BATCH).sum().backward()
        assert pi.logp.grad is not None
        assert pi.logp.grad[1, 2] == 0
        assert (pi.logp.grad[BATCH.mask] > 0).all()


def test_product_ratio_multiplies_the_row_and_never_overflows():
    assert ratios.product(PI, BATCH).flatten().tolist() == pytest.approx([exp(0.6), exp(0.8)])
    far = perturb_logp(BATCH, [[50.0, 50.0, 50.0], [-500.0, -500.0, 0.0]])
    assert ratios.product(far, BATCH).flatten().tolist() == pytest.approx([exp(20), exp(-20)])


def test_sequence_token_ratio_has_the_sequence_value_and_the_token_gradient():
    pi = perturb_logp(BATCH, [[0.3, -0.1, 0.4], [0.2, 0.6, 9.0]])
    s = ratios.SequenceTokenRatio()(pi, BATCH)
    (s * torch.tensor([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]])).sum().backward()
    assert s[BATCH.mask].tolist() == pytest.approx([exp(0.2)] * 3 + [exp(0.4)] * 2)
    assert pi.logp.grad is not None
    assert pi.logp.grad[BATCH.mask].tolist() == pytest.approx([exp(0.2), 2 * exp(0.2), 0, 0, 0])
    assert merged_requires(ratios.SequenceTokenRatio()).surrogate_gradient


def test_capped_ratio_requires_the_signals_of_its_ratio():
    assert ratios.CappedRatio(1.2)(PI, BATCH)[0].tolist() == pytest.approx([1.2, exp(-0.1), 1.2])
    assert merged_requires(ratios.CappedRatio(1.2)).all_signals == frozenset()
    assert merged_requires(ratios.CappedRatio(1.2, ratios.RatioTo("sampler"))).all_signals == {
        "logp@sampler"
    }


def test_ratio_to_another_policy_is_1_where_masked():
    batch = make_batch(
        group=[0, 0], length=[2, 1], signals={"logp@ref": [[-1.5, -1.0], [-0.5, 7.0]]}
    )
    pi = perturb_logp(batch, [[0.0, 0.0], [0.0, 5.0]])
    expected = [exp(0.5), 1.0, exp(-0.5), 1.0]
    assert ratios.RatioTo("ref")(pi, batch).flatten().tolist() == pytest.approx(expected)


def forked(batch, sequence):
    """The batch, in which rows with the same number are one sequence."""
    return replace(batch, sequence=torch.tensor(sequence))


def test_rows_of_a_forked_rollout_have_the_ratio_of_the_rollout():
    batch = forked(make_batch(group=[0, 0, 0], length=[1, 3, 2]), [4, 4, 2])
    pi = perturb_logp(batch, [[0.6, 9.0, 9.0], [0.2, -0.1, 0.3], [0.4, 0.0, 9.0]])
    # 4 actions: (0.6 + 0.2 - 0.1 + 0.3) / 4 = 0.25; 2 actions: 0.4 / 2 = 0.2
    means = ratios.sequence(pi, batch).flatten().tolist()
    assert means == pytest.approx([exp(0.25), exp(0.25), exp(0.2)])
    products = ratios.product(pi, batch).flatten().tolist()
    assert products == pytest.approx([exp(1.0), exp(1.0), exp(0.4)])
    # the largest of (0.6) and (0.2, -0.1, 0.3), and of (0.4, 0.0)
    largest = row_max(pi.logp - batch.old_logp, batch).flatten().tolist()
    assert largest == pytest.approx([0.6, 0.6, 0.4])


def test_the_gradient_of_a_forked_ratio_is_shared_by_all_its_actions():
    batch = forked(make_batch(group=[0, 0], length=[1, 3]), [0, 0])
    pi = perturb_logp(batch, [[0.6, 0.0, 0.0], [0.2, -0.1, 0.3]])
    (gradient,) = torch.autograd.grad(ratios.sequence(pi, batch)[0, 0], pi.logp)
    share = exp(0.25) / 4
    assert gradient.tolist()[0] == pytest.approx([share, 0.0, 0.0])
    assert gradient.tolist()[1] == pytest.approx([share] * 3)


def test_ratios_of_a_sequence_say_that_they_couple_its_rows():
    for ratio in (ratios.sequence, ratios.product, ratios.SequenceTokenRatio()):
        assert merged_requires(ratio).coupled_sequences
    assert merged_requires(ratios.RatioTo("sampler", row_sum)).coupled_sequences
    assert not merged_requires(ratios.token).coupled_sequences
