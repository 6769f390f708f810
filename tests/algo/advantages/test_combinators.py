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
from grupo.core.errors import MissingSignalError
from grupo.testing.batches import make_batch


def short(batch):
    return batch.lengths < 2


def parity(batch):
    return torch.arange(len(batch.reward)) % 2


def doubled(x, batch):
    return 2 * x


def per_action(x, batch):
    return torch.ones_like(batch.old_logp)


def test_chain_applies_from_left_to_right():
    batch = make_batch(group=[0, 0], reward=[1.0, 0.0])
    clipped_first = chain(doubled, ClampAdvantage(0.0, 1.0), Center())(batch.reward, batch)
    assert clipped_first.tolist() == [0.5, -0.5]  # 2, 0 -> 1, 0 -> less the mean 0.5
    centred_first = chain(doubled, Center(), ClampAdvantage(0.0, 1.0))(batch.reward, batch)
    assert centred_first.tolist() == [1.0, 0.0]  # 2, 0 -> 1, -1 -> 1, 0


def test_chains_within_chains_are_laid_flat():
    assert chain(chain(Center(), doubled), ScaleByStd()) == chain(Center(), doubled, ScaleByStd())


def test_identity_is_the_reward():
    batch = make_batch(group=[0, 0], reward=[3.0, 1.0])
    assert identity(batch.reward, batch).tolist() == [3.0, 1.0]


def test_each_part_is_credited_on_its_own_and_then_added():
    batch = make_batch(group=[0, 0, 0])
    parts = {"right": [1.0, 0.0, 0.0], "short": [0.0, 6.0, 0.0]}
    named = SignalDict({k: torch.tensor(v, dtype=torch.float64) for k, v in parts.items()})
    credit = PerRewardTerm(Center(), (("right", 3.0), ("short", 0.5)))
    # 3 * (2/3, -1/3, -1/3) + 0.5 * (-2, 4, -2)
    assert credit(batch.reward, replace(batch, reward_terms=named)).tolist() == pytest.approx(
        [1, 1, -2]
    )
    assert credit.required_reward_terms == ("right", "short")


def test_a_part_that_nobody_measured_raises_by_its_name():
    batch = make_batch(group=[0])
    with pytest.raises(MissingSignalError, match="'style' was not measured"):
        PerRewardTerm(Center(), (("style", 1.0),))(batch.reward, batch)


def test_a_part_can_be_the_reward():
    batch = make_batch(group=[0, 0], reward=[9.0, 9.0], reward_terms={"votes": [0.25, 1.0]})
    assert UseRewardTerm("votes")(batch.reward, batch).tolist() == [0.25, 1.0]
    assert UseRewardTerm("votes").required_reward_terms == ("votes",)


def test_regrouped_compares_others():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 2.0, 3.0, 8.0])
    regrouped = GroupedBy(Center(), parity)(batch.reward, batch)
    assert regrouped.tolist() == [-1.0, -3.0, 1.0, 3.0]  # {1, 3} mean 2, {2, 8} mean 5


def test_masked_credits_only_where_kept():
    batch = make_batch(group=[0, 0, 0], reward=[3.0, 0.0, 0.0], length=[1, 1, 2])
    assert MaskAdvantage(Center(), short)(batch.reward, batch).tolist() == [2.0, -1.0, 0.0]
    assert MaskAdvantage(per_action, short)(batch.reward, batch).tolist() == [
        [1, 1],
        [1, 1],
        [0, 0],
    ]


def test_clipped_holds_between_its_bounds():
    x = torch.tensor([-3.0, 0.25, 9.0])
    assert ClampAdvantage(-1.0, 2.0)(x, make_batch(group=[0, 0, 0])).tolist() == [-1.0, 0.25, 2.0]
