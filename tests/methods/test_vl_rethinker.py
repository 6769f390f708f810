"""VL-Rethinker: advantages of a group, the clipped loss, and the likelihood of rethinking."""

from math import exp, log

import pytest

from grupo.algo.minibatches import Updates
from grupo.methods.vl_rethinker import vl_rethinker
from grupo.testing.batches import make_batch, perturb_logp

METHOD = vl_rethinker()


def losses(advantage, rethought, ratio, logp=-2.0):
    batch = make_batch(
        [0], advantage=[advantage], logp=logp, reward_terms={"rethought": [rethought]}
    )
    return METHOD.loss(perturb_logp(batch, [[log(ratio)]]), batch).item()


def test_the_ratio_is_clipped_at_0_8_and_1_35():
    assert losses(1.0, 0.0, 1.5) == pytest.approx(-1.35)
    assert losses(1.0, 0.0, 1.3) == pytest.approx(-1.3)
    assert losses(-1.0, 0.0, 0.5) == pytest.approx(0.8)


def test_correct_rethinking_has_a_twentieth_of_the_likelihood_loss_on_top():
    ratio = exp(0.25)
    assert losses(0.5, 1.0, ratio) == pytest.approx(-0.5 * ratio + 0.05 * 1.75)  # log pi = -1.75
    assert losses(0.5, 0.0, ratio) == pytest.approx(-0.5 * ratio)
    assert losses(-0.5, 1.0, 1.0) == pytest.approx(0.5)


def test_advantages_are_centred_and_not_scaled():
    batch = make_batch([0, 0, 0, 0], reward=[1.0, 0.0, 0.0, 0.0])
    assert METHOD.advantage(batch.reward, batch).tolist() == [0.75, -0.25, -0.25, -0.25]


def test_a_step_has_8_minibatches():
    assert METHOD.updates == Updates(minibatches=8)


def test_the_rare_outcome_of_a_group_is_replayed_three_times_as_often():
    """|A| of 3/4 and 1/4, three times: half of the draws are the one success."""
    batch = make_batch([0, 0, 0, 0], reward=[1.0, 0.0, 0.0, 0.0])
    weights = METHOD.advantage(batch.reward, batch).abs()
    assert (weights / weights.sum()).tolist() == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6])
