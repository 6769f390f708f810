import pytest
import torch

from grupo.algo.advantages import Center, chain
from grupo.algo.advantages.kl_in_reward import KLInReward, KLPerAction, KLToGo, zero_advantage
from grupo.testing.batches import make_batch

SEEN = {"logp@ref": [[-1.5, -3.0], [-0.5, 99.0]], "logp@teacher": [[-1.0, 0.0], [-2.0, 99.0]]}
BATCH = make_batch([0, 0], reward=[1.0, 0.0], length=[2, 1], signals=SEEN)  # k1: 0.5, 2; -0.5


def test_a_rollout_pays_the_sum_over_its_actions():
    paid = KLInReward(0.1)(BATCH.reward, BATCH)
    assert paid.tolist() == pytest.approx([1 - 0.25, 0.05])


def test_a_rollout_of_two_rows_pays_for_both():
    batch = BATCH.select_rows(torch.tensor([0, 1]))
    batch.rollout.zero_()
    assert KLInReward(1.0)(BATCH.reward, batch).tolist() == pytest.approx([1 - 2.5 + 0.5, 0.0])


def test_an_action_may_pay_for_itself_alone():
    paid = KLPerAction(0.1)(BATCH.reward, BATCH)
    assert paid.tolist() == [pytest.approx([0.95, 0.8]), pytest.approx([0.05, 0.0])]


def test_an_action_may_pay_for_what_follows():
    paid = KLToGo(0.1)(BATCH.reward, BATCH)
    assert paid.tolist() == [pytest.approx([0.75, 0.8]), pytest.approx([0.05, 0.0])]


def test_another_policy_may_set_the_price():
    assert KLPerAction(1.0, "teacher")(BATCH.reward, BATCH).tolist() == [[1.0, 2.0], [-1.0, 0.0]]
    assert KLPerAction(1.0, "teacher").required_signals == {"logp@teacher"}
    assert KLInReward(1.0).required_signals == KLToGo(1.0).required_signals == {"logp@ref"}


def test_penalties_come_before_or_after_a_baseline():
    before = chain(KLInReward(0.1), Center())(BATCH.reward, BATCH)
    assert before.tolist() == pytest.approx([0.35, -0.35])  # 0.75 and 0.05
    after = chain(Center(), KLPerAction(0.1))(BATCH.reward, BATCH)
    assert after.tolist() == [pytest.approx([0.45, 0.3]), pytest.approx([-0.45, 0.0])]


def test_a_policy_that_is_the_other_pays_nothing():
    same = make_batch([0, 0], reward=[1.0, 0.0])
    for penalty in (KLInReward(5.0), KLPerAction(5.0), KLToGo(5.0)):
        assert penalty(same.reward, same).flatten().tolist() == [1.0, 0.0]


def test_nothing_is_no_reward():
    assert zero_advantage(BATCH.reward, BATCH).tolist() == [0.0, 0.0]
