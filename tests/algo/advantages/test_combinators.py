from dataclasses import replace

import pytest
import torch

from grupo.algo.advantages import (
    Center,
    ClampAdvantage,
    GroupedBy,
    MaskAdvantage,
    PerRewardTerm,
    ScaleByStd,
    UseRewardTerm,
    chain,
    identity,
)
from grupo.core.batch import SignalDict
from grupo.core.requires import merged_requires
from grupo.testing.batches import make_batch
from grupo.util.errors import MissingSignalError


def short(batch):
    return batch.lengths < 2


def alternating_labels(batch):
    return torch.arange(len(batch.reward)) % 2


def double(x, batch):
    return 2 * x


def one_per_action(x, batch):
    return torch.ones_like(batch.old_logp)


def test_chain_applies_estimators_from_left_to_right():
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0])
    clamped_first = chain(double, ClampAdvantage(0.0, 1.0), Center())(batch.reward, batch)
    assert clamped_first.tolist() == [0.5, -0.5]  # 2, 0 -> 1, 0 -> minus the mean 0.5
    centred_first = chain(double, Center(), ClampAdvantage(0.0, 1.0))(batch.reward, batch)
    assert centred_first.tolist() == [1.0, 0.0]  # 2, 0 -> 1, -1 -> 1, 0


def test_nested_chains_are_flattened():
    assert chain(chain(Center(), double), ScaleByStd()) == chain(Center(), double, ScaleByStd())


def test_identity_returns_the_reward():
    batch = make_batch(group=[0, 0], reward=[3.0, 1.0])
    assert identity(batch.reward, batch).tolist() == [3.0, 1.0]


def test_per_reward_term_adds_weighted_advantages_of_each_term():
    batch = make_batch(group=[0, 0, 0])
    terms = {"right": [1.0, 0.0, 0.0], "short": [0.0, 6.0, 0.0]}
    reward_terms = SignalDict(
        {name: torch.tensor(x, dtype=torch.float64) for name, x in terms.items()}
    )
    estimator = PerRewardTerm(Center(), (("right", 3.0), ("short", 0.5)))
    # 3 * (2/3, -1/3, -1/3) + 0.5 * (-2, 4, -2)
    advantage = estimator(batch.reward, replace(batch, reward_terms=reward_terms))
    assert advantage.tolist() == pytest.approx([1, 1, -2])
    assert merged_requires(estimator).reward_terms == {"right", "short"}


def test_missing_reward_term_raises_with_its_name():
    batch = make_batch(group=[0])
    with pytest.raises(MissingSignalError, match="'style' was not measured"):
        PerRewardTerm(Center(), (("style", 1.0),))(batch.reward, batch)


def test_use_reward_term_replaces_the_reward():
    batch = make_batch(group=[0, 0], reward=[9.0, 9.0], reward_terms={"votes": [0.25, 1.0]})
    assert UseRewardTerm("votes")(batch.reward, batch).tolist() == [0.25, 1.0]
    assert merged_requires(UseRewardTerm("votes")).reward_terms == {"votes"}


def test_grouped_by_compares_within_the_new_labels():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 2.0, 3.0, 8.0])
    advantage = GroupedBy(Center(), alternating_labels)(batch.reward, batch)
    assert advantage.tolist() == [-1.0, -3.0, 1.0, 3.0]  # {1, 3} mean 2, {2, 8} mean 5


def test_mask_advantage_is_0_for_rollouts_that_are_not_kept():
    batch = make_batch(group=[0, 0, 0], reward=[3.0, 0.0, 0.0], length=[1, 1, 2])
    assert MaskAdvantage(Center(), short)(batch.reward, batch).tolist() == [2.0, -1.0, 0.0]
    assert MaskAdvantage(one_per_action, short)(batch.reward, batch).tolist() == [
        [1, 1],
        [1, 1],
        [0, 0],
    ]


def test_clamp_advantage_clamps_to_its_bounds():
    x = torch.tensor([-3.0, 0.25, 9.0])
    assert ClampAdvantage(-1.0, 2.0)(x, make_batch(group=[0, 0, 0])).tolist() == [-1.0, 0.25, 2.0]
