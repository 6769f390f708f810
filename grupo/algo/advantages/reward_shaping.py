"""Reward shaping: penalties and bonuses for length and repetition, before the baseline."""

from collections.abc import Hashable, Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, PerRollout, broadcast_to_tokens
from grupo.core.component import check_field, component
from grupo.core.numbers import Fraction, NumberOrSchedule, PositiveInt
from grupo.core.requires import Requires


@component
class RescaleReward:
    """The affine map of x from the environment's range of rewards to another range, (R,).

    It stands before a term of fixed size, such as `OverlongPenalty`, whose paper has rewards of
    another range than the environment. Centring and scaling alone are not changed by it.

    Args:
        reward_range: smallest and largest reward of the environment; a reward outside is an error.
        target: range to which the rewards are mapped.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> RescaleReward()(torch.tensor([0.0, 0.5, 1.0]), make_batch(group=[0, 0, 0]))
    tensor([-1.,  0.,  1.])
    """

    reward_range: tuple[float, float] = (0.0, 1.0)
    target: tuple[float, float] = (-1.0, 1.0)

    def __post_init__(self) -> None:
        for name in ("reward_range", "target"):
            low, high = getattr(self, name)
            check_field(self, name, low < high, "the smallest, then the largest reward")

    @property
    def requires(self) -> Requires:
        return Requires(reward_range=self.reward_range, bounded_rewards=("reward",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        low, high = self.reward_range
        share = (x - low) / (high - low)
        return self.target[0] + share * (self.target[1] - self.target[0])


@component
class OverlongPenalty:
    """x + clamp((max_length - overlong_buffer - L) / overlong_buffer, -1, 0), L the length, (R,).

    The penalty is 0 up to `max_length - overlong_buffer` tokens and falls linearly to -1 at
    `max_length`. It is meant for rewards of -1 and 1: among rewards of 0 and 1 an overlong correct
    answer would equal a short wrong one (`RescaleReward`).
    Source: soft overlong punishment of DAPO (arXiv:2503.14476), eq. 13.

    Args:
        max_length: length of the full penalty, in tokens.
        overlong_buffer: length of the linear part, in tokens.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 0], length=[2, 3, 4])
    >>> OverlongPenalty(max_length=4, overlong_buffer=2)(torch.zeros(3), batch)
    tensor([ 0.0000, -0.5000, -1.0000])
    """

    max_length: PositiveInt
    overlong_buffer: PositiveInt

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        free = self.max_length - self.overlong_buffer
        penalty = (free - batch.lengths) / self.overlong_buffer
        return x + penalty.clamp(-1, 0).to(x)


def brevity(batch: Batch) -> PerRollout:
    """1/2 - (L - min L) / (max L - min L) within the group: 1/2 for the shortest, -1/2 the longest.

    0 for a group whose rollouts have equal lengths. Shape (R,).
    Source: Kimi k1.5 (arXiv:2501.12599), section 2.3.3.

    >>> from grupo.testing.batches import make_batch
    >>> brevity(make_batch(group=[0, 0, 0, 1], length=[1, 2, 5, 3])).tolist()
    [0.5, 0.25, -0.5, 0.0]
    """
    length = batch.lengths
    shortest = group_ops.min(length, batch.group)
    longest = group_ops.max(length, batch.group)
    relative = (length - shortest) / (longest - shortest).clamp(min=1)
    return torch.where(longest > shortest, 0.5 - relative, 0.0)


def length_reward(correct: Bool[Tensor, "R"], batch: Batch) -> PerRollout:
    """`brevity` for correct rollouts, min(0, brevity) for incorrect ones, (R,).

    Source: Kimi k1.5 (arXiv:2501.12599), section 2.3.3.

    Args:
        correct: mask of correct rollouts, (R,).
        batch: provides lengths and groups.

    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0, 0, 0], length=[1, 5, 1, 5])
    >>> length_reward(torch.tensor([True, True, False, False]), batch).tolist()
    [0.5, -0.5, 0.0, -0.5]
    """
    bonus = brevity(batch)
    return torch.where(correct, bonus, bonus.clamp(max=0))


def value_for_label(values: Sequence[float], label: PerRollout) -> PerRollout:
    """Look up `values[label]` for the integer label of each rollout, (R,).

    Args:
        values: value of the labels 0, 1, 2, ...
        label: labels stored as floats, (R,).

    Raises:
        IndexError: a label has no value.

    >>> value_for_label((0.5, 0.25, 0.0), torch.tensor([2.0, 0.0]))
    tensor([0.0000, 0.5000])
    """
    return torch.tensor(values, dtype=label.dtype)[label.long()]


def repeated_ngrams(tokens: Sequence[Hashable], n: int = 40) -> list[float]:
    """1.0 for every token of an n-gram that occurred before, else 0.0; for `RepetitionPenalty`.

    Source: Yeo et al., arXiv:2502.03373.

    Args:
        tokens: tokens of one answer.
        n: length of the n-grams, in tokens.

    >>> repeated_ngrams("ab" "c" "ab", n=2)
    [0.0, 0.0, 0.0, 1.0, 1.0]
    """
    previous = set()
    repeated = [0.0] * len(tokens)
    for end in range(n, len(tokens) + 1):
        ngram = tuple(tokens[end - n : end])
        if ngram in previous:
            repeated[end - n : end] = [1.0] * n
        previous.add(ngram)
    return repeated


@component
class RepetitionPenalty:
    """x_t + sum_{s >= t} discount^(s - t) repetition_coef [token s is repeated], (N, T).

    Source: Yeo et al., arXiv:2502.03373, who discount each kind of reward by its own factor.

    Args:
        repetition_coef: reward of a repeated token; negative for a penalty.
        discount: factor per token by which the penalty reaches back, in [0, 1].
        step_value: signal that is 1 for repeated tokens, see `repeated_ngrams`.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0], length=[3], signals={"step/repeated": [[0.0, 1.0, 1.0]]})
    >>> RepetitionPenalty(repetition_coef=-1.0, discount=0.5)(torch.zeros(1), batch)
    tensor([[-0.7500, -1.5000, -1.0000]], dtype=torch.float64)
    """

    repetition_coef: NumberOrSchedule
    discount: Fraction
    step_value: str = "step/repeated"

    @property
    def requires(self) -> Requires:
        # 1 for tokens of repeated n-grams, else 0
        return Requires(signals=(self.step_value,))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        repeated = batch.mask & (batch.signals[self.step_value] > 0)
        penalty = self.repetition_coef * repeated.to(batch.old_logp)
        running = penalty.new_zeros(len(penalty))
        returns = torch.zeros_like(penalty)
        for t in reversed(range(penalty.shape[1])):
            running = penalty[:, t] + self.discount * running
            returns[:, t] = running
        return broadcast_to_tokens(x, batch) + returns
