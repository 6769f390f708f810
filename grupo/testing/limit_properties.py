"""Properties of methods at the limits: equal, extreme, single, masked and no rollouts."""

from dataclasses import replace

import torch

from grupo.core.batch import SignalDict
from grupo.method import Method
from grupo.testing.property_helpers import (
    EXTREME_REWARD,
    SINGLE_ROLLOUTS,
    assert_finite,
    assert_zero,
    batch_for,
    loss_and_gradient,
    select_rollouts,
    with_extreme_ratios,
    with_reward_as_advantage,
    without_rollouts,
)


def equal_rewards_give_finite_gradients(method: Method) -> None:
    """Loss and gradient are finite if all rewards are 0, or all are 1."""
    batch = batch_for(method)
    for reward in (0.0, 1.0):
        terms = SignalDict({name: x * 0 + reward for name, x in batch.reward_terms.items()})
        equal = replace(batch, reward=batch.reward * 0 + reward, reward_terms=terms)
        results = loss_and_gradient(method, with_reward_as_advantage(equal))
        assert_finite(*results, f"every reward is {reward}")


def extreme_ratios_give_finite_gradients(method: Method) -> None:
    """Loss and gradient are finite if ratios are near e^50, near e^-50, or some of each."""
    batch = batch_for(method)
    row = torch.arange(len(batch.mask))[:, None]
    cases = {"e^50": row >= 0, "e^-50": row < 0, "e^50 or e^-50": row % 2 == 0}
    for ratios, is_high in cases.items():
        policy, extreme = with_extreme_ratios(batch, is_high)
        assert_finite(*loss_and_gradient(method, extreme, policy), f"ratios are {ratios}")


def masked_batch_gives_zero_loss(method: Method) -> None:
    """Loss and gradient are 0 if every action is masked."""
    batch = batch_for(method)
    masked = with_reward_as_advantage(replace(batch, mask=torch.zeros_like(batch.mask)))
    assert_zero(*loss_and_gradient(method, masked), "every action is masked")


def empty_batch_gives_zero_loss(method: Method) -> None:
    """Loss and gradient are 0 for a batch without rollouts, whatever its number of columns."""
    batch = batch_for(method)
    for columns in (batch.mask.shape[1], 0):
        try:
            results = loss_and_gradient(method, without_rollouts(batch, columns))
        except Exception as error:  # any component may index or reduce what is not there
            message = f"an empty batch raises {type(error).__name__}: {error}"
            raise AssertionError(message) from error
        assert_zero(*results, "the batch is empty")


def single_rollout_gives_finite_gradients(method: Method) -> None:
    """Loss and gradient are finite if one rollout, alone in its group, is the whole batch."""
    batch = batch_for(method)
    for rollout in SINGLE_ROLLOUTS:
        single = select_rollouts(batch, torch.tensor([rollout]))
        history = (batch.history[int(single.group)],)
        single = replace(single, group=single.group * 0, history=history)
        assert_finite(*loss_and_gradient(method, single), f"rollout {rollout} is alone")


def extreme_rewards_give_finite_gradients(method: Method) -> None:
    """Loss and gradient are finite if rewards and reward terms are 1e6 and -1e6 in turn.

    Labels, counts and rewards of a fixed range keep their values: components declare them in
    `Requires.bounded_rewards`, by the name of the reward term or as "reward".
    """
    batch = batch_for(method)
    bounded = method.requires.bounded_rewards
    extreme = EXTREME_REWARD * (1 - 2 * (torch.arange(len(batch.reward)) % 2)).to(batch.reward)
    terms = {name: x if name in bounded else extreme for name, x in batch.reward_terms.items()}
    reward = batch.reward if "reward" in bounded else extreme
    changed = replace(batch, reward=reward, reward_terms=SignalDict(terms))
    results = loss_and_gradient(method, with_reward_as_advantage(changed))
    assert_finite(*results, "rewards are 1e6 and -1e6")
