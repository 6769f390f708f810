import pytest
import torch

from grupo.algo.advantages import Center, chain
from grupo.algo.advantages.kl_in_reward import KLInReward, KLPerAction, KLToGo, zero_advantage
from grupo.core.requires import merged_requires
from grupo.testing.batches import make_batch

SIGNALS = {"logp@ref": [[-1.5, -3.0], [-0.5, 99.0]], "logp@teacher": [[-1.0, 0.0], [-2.0, 99.0]]}
BATCH = make_batch([0, 0], reward=[1.0, 0.0], length=[2, 1], signals=SIGNALS)  # k1: 0.5, 2; -0.5


def test_kl_in_reward_subtracts_the_sum_over_the_rollout():
    shaped = KLInReward(0.1)(BATCH.reward, BATCH)
    assert shaped.tolist() == pytest.approx([1 - 0.25, 0.05])


def test_kl_in_reward_sums_all_rows_of_a_rollout():
    batch = BATCH.select_rows(torch.tensor([0, 1]))
    batch.rollout.zero_()
    assert KLInReward(1.0)(BATCH.reward, batch).tolist() == pytest.approx([1 - 2.5 + 0.5, 0.0])


def test_kl_per_action_penalises_each_token_alone():
    shaped = KLPerAction(0.1)(BATCH.reward, BATCH)
    assert shaped.tolist() == [pytest.approx([0.95, 0.8]), pytest.approx([0.05, 0.0])]


def test_kl_to_go_penalises_the_later_tokens():
    shaped = KLToGo(0.1)(BATCH.reward, BATCH)
    assert shaped.tolist() == [pytest.approx([0.75, 0.8]), pytest.approx([0.05, 0.0])]


def test_kl_penalty_against_another_policy():
    assert KLPerAction(1.0, "teacher")(BATCH.reward, BATCH).tolist() == [[1.0, 2.0], [-1.0, 0.0]]
    assert merged_requires(KLPerAction(1.0, "teacher")).all_signals == {"logp@teacher"}
    assert (
        merged_requires(KLInReward(1.0)).all_signals
        == merged_requires(KLToGo(1.0)).all_signals
        == {"logp@ref"}
    )


def test_kl_penalty_before_or_after_the_baseline():
    before = chain(KLInReward(0.1), Center())(BATCH.reward, BATCH)
    assert before.tolist() == pytest.approx([0.35, -0.35])  # 0.75 and 0.05
    after = chain(Center(), KLPerAction(0.1))(BATCH.reward, BATCH)
    assert after.tolist() == [pytest.approx([0.45, 0.3]), pytest.approx([-0.45, 0.0])]


def test_equal_policies_have_no_kl_penalty():
    same = make_batch([0, 0], reward=[1.0, 0.0])
    for penalty in (KLInReward(5.0), KLPerAction(5.0), KLToGo(5.0)):
        assert penalty(same.reward, same).flatten().tolist() == [1.0, 0.0]


def test_zero_advantage_is_0():
    assert zero_advantage(BATCH.reward, BATCH).tolist() == [0.0, 0.0]
