"""IGPO: three turns, of which the first has the largest information gain."""

import pytest
import torch

from grupo.algo.advantages import chain
from grupo.algo.advantages.turn_table import CenterTurns
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.methods.igpo import InformationGainReturn, igpo, information_gains, unscaled
from grupo.rollouts.samplers import GroupSampler, WithAnswerBelief
from grupo.testing.batches import make_batch
from grupo.testing.smoke.check_properties import check_properties


def search_batch(belief=((0.10, 0.40, 0.35), (0.10, 0.10, 0.0)), reward=(1.0, 0.0), length=(3, 2)):
    return make_batch(
        group=[0, 0],
        reward=list(reward),
        length=list(length),
        turn=[[0, 1, 2], [0, 1, 2]],
        signals={"step/belief": [*map(list, belief)]},
    )


def test_turn_reward_is_belief_gain_and_last_turn_is_outcome():
    table = information_gains(torch.tensor([1.0, 0.0]), search_batch())
    assert table[0].tolist() == pytest.approx([0.30, -0.05, 1.0])
    assert table[1].tolist() == pytest.approx([0.0, 0.0, 0.0])  # no rise, then the outcome


def test_returns_to_go_match_catalogue():
    g = information_gains(torch.tensor([1.0, 0.0]), search_batch())[0]
    assert g.flip(0).cumsum(0).flip(0).tolist() == pytest.approx([1.25, 0.95, 1.0])


def advantage(batch, gamma=1.0):
    return InformationGainReturn(gamma)(batch.reward, batch)


def test_gains_are_standardized_within_group_before_summing():
    # five gains: .3, -.05, 1, 0, 0: mean .25; squares .0025 + .09 + .5625 + .0625 + .0625 = .78
    s = (0.78 / 4) ** 0.5
    A = [0.05 / s, -0.3 / s, 0.75 / s]
    actual = advantage(search_batch())
    assert actual[0].tolist() == pytest.approx([sum(A), sum(A[1:]), A[2]], abs=1e-5)
    assert actual[1].tolist() == pytest.approx([-0.5 / s, -0.25 / s, 0.0], abs=1e-5)


def test_later_gains_are_discounted_by_gamma():
    actual, all_ = advantage(search_batch(), gamma=0.5), advantage(search_batch())
    last = all_[0, 2].item()
    assert actual[0, 2].item() == pytest.approx(last)
    assert actual[0, 1].item() == pytest.approx(all_[0, 1].item() - 0.5 * last)


def test_informative_turn_has_advantage_without_success():
    batch = search_batch(reward=(0.0, 0.0))
    A = batch.with_advantage(igpo().advantage).advantage
    assert A[0, 0] > A[1, 0]
    flat = make_batch(group=[0, 0], reward=[0.0, 0.0], signals={"step/belief": [[0.1], [0.1]]})
    assert flat.with_advantage(igpo().advantage).advantage.abs().max() == 0


def test_release_standardizes_returns_per_turn():
    estimator = chain(InformationGainReturn(1.0, unscaled), CenterTurns())
    A = estimator(search_batch().reward, search_batch())
    # returns 1.25, .95, 1 and 0, 0: the means are .625, .475, 1
    assert A[0].tolist() == pytest.approx([0.625, 0.475, 0.0])
    assert A[1].tolist() == pytest.approx([-0.625, -0.475, 0.0])
    assert [
        broken for _, _, broken in check_properties(igpo().replace(advantage=estimator)) if broken
    ] == []


def test_actions_of_a_turn_share_its_advantage():
    batch = make_batch(
        group=[0, 0],
        length=[3, 1],
        turn=[[0, 0, 1], [0, 0, 0]],
        signals={"step/belief": [[0.2, 0.2, 0.6], [0.2, 0.9, 0.9]]},
    )
    # gains .4, 0, 0: the mean is .4 / 3, the deviation .4 / sqrt(3)
    A = advantage(batch)
    s = 0.4 / 3**0.5
    rise, baseline = (0.4 - 0.4 / 3) / s, -0.4 / 3 / s
    assert A[0].tolist() == pytest.approx([rise + baseline, rise + baseline, baseline], abs=1e-5)
    assert A[1].tolist() == pytest.approx([baseline, 0.0, 0.0], abs=1e-5)


def test_defaults_match_release():
    method = igpo()
    assert method.sampler == WithAnswerBelief(GroupSampler(16), "<answer>")
    assert method.advantage == InformationGainReturn(1.0)
    assert method.loss == Clip(0.2, 0.2) + 0.001 * KL()
    assert method.requires.all_signals == {"step/belief", "logp@ref"}


def test_step_has_16_minibatches():
    assert igpo().updates == Updates(minibatches=16)
