"""Rules of replay: which rollouts of earlier steps are trained on, and in whose place.

A run with such a rule has a replay buffer of stored rollouts: rollouts of earlier steps with the
advantages that they were given and their old log-probabilities. In every step the rule reads the
batch of the step, whose advantages are estimated, and the numbers of the buffer. It returns the
positions of the rollouts to draw, the rollouts of the step that stay in the batch, and those that
enter the buffer. Drawn rollouts keep their advantages. The oldest rollouts leave a full buffer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from grupo.algo.data_source import is_demonstration, off_context_mask
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NonNegativeInt, NumberOrSchedule, PositiveInt
from grupo.core.requires import Requires


@dataclass(frozen=True)
class ReplayCandidates:
    """The numbers of the rollouts in a replay buffer, oldest first.

    Args:
        priority: Mean |advantage| over the trained actions of each rollout (K,), float64.
        step: Index of the step that generated each rollout (K,), from 0.
    """

    priority: Float[Tensor, "K"]
    step: Int[Tensor, "K"]


@dataclass(frozen=True)
class ReplayRequest:
    """The inputs of a rule of replay.

    Args:
        batch: The rollouts of the step, with advantages.
        replay_buffer: The rollouts of earlier steps.
        step: Index of the step, from 0.
        rng: Generator for the draw; derived from the seed and the step.
    """

    batch: Batch
    replay_buffer: ReplayCandidates
    step: int
    rng: Random

    @property
    def magnitude(self) -> Float[Tensor, "R"]:
        """Mean |advantage| over the trained actions of each rollout of the step."""
        return advantage_magnitude(self.batch)


@dataclass(frozen=True)
class ReplayPlan:
    """The choice of a rule of replay.

    Args:
        drawn: Positions, in the buffer, of the stored rollouts that join the batch, in order; a
            position may occur several times.
        trained: True for the rollouts of the step that stay in the batch (R,).
        admitted: True for the rollouts of the step that enter the replay buffer (R,).
    """

    drawn: tuple[int, ...]
    trained: Bool[Tensor, "R"]
    admitted: Bool[Tensor, "R"]


class ReplayRule(Protocol):
    """Chooses the rollouts of a step's batch from those of the step and those of the replay buffer.

    It is not called in a step without groups to train on.
    """

    def __call__(self, request: ReplayRequest, /) -> ReplayPlan: ...


def no_replay(request: ReplayRequest) -> ReplayPlan:
    """The rollouts of the step alone; no replay buffer is kept."""
    everything = torch.ones(len(request.batch.reward), dtype=torch.bool)
    return ReplayPlan((), everything, ~everything)


def advantage_magnitude(batch: Batch) -> Float[Tensor, "R"]:
    """Mean |advantage| over the trained actions of each rollout, 0 for one without any.

    >>> from grupo.testing.batches import make_batch
    >>> advantage_magnitude(make_batch([0, 0], advantage=[-2.0, 0.0])).tolist()
    [2.0, 0.0]
    """
    per_row = (batch.advantage.abs() * batch.mask).double().sum(1)
    total = per_row.new_zeros(len(batch.reward)).index_add(0, batch.rollout, per_row)
    return total / batch.lengths.double().clamp(min=1)


Draw = Callable[[Tensor, int, Random], list[int]]


def with_replacement(weight: Float[Tensor, "K"], count: int, rng: Random) -> list[int]:
    """`count` positions, each drawn with probability weight / sum of the weights.

    Returns no position if all weights are 0.

    >>> with_replacement(torch.tensor([0.0, 2.0]), 3, Random(0))
    [1, 1, 1]
    """
    bounds = weight.double().cumsum(0)
    if not len(bounds) or bounds[-1] <= 0:
        return []
    points = torch.tensor([rng.random() for _ in range(count)], dtype=torch.float64) * bounds[-1]
    return torch.searchsorted(bounds, points, right=True).tolist()


def without_replacement(weight: Float[Tensor, "K"], count: int, rng: Random) -> list[int]:
    """Up to `count` different positions, drawn one after the other in proportion to the weights.

    Each position gets an exponential waiting time whose rate is its weight. The positions with the
    shortest times have the same distribution as successive draws. Positions with weight 0 are never
    drawn.

    >>> sorted(without_replacement(torch.tensor([0.0, 2.0, 1.0]), 3, Random(0)))
    [1, 2]
    """
    generator = torch.Generator().manual_seed(rng.getrandbits(63))
    uniform = torch.rand(len(weight), dtype=torch.float64, generator=generator)
    waiting_time = -torch.log1p(-uniform) / weight.double()  # infinite, or NaN, where it is 0
    waiting_time[weight <= 0] = torch.inf
    count = min(count, int((weight > 0).sum()))
    return waiting_time.topk(count, largest=False).indices.tolist()


@component
class FillFromBuffer:
    """Rollouts of the replay buffer take the places of rollouts without advantage.

    Rollouts are drawn with probability |A|^alpha / sum |A|^alpha, as many as the step has rollouts
    without advantage, but at most `max_share` of the step's rollouts. Each of them replaces a
    rollout without advantage, the last one of the batch first. The size of the batch therefore
    stays the same. Rollouts of the step with an advantage enter the buffer; replayed ones and
    demonstrations do not.
    Source: Selective Sample Replay of VL-Rethinker, Wang et al., 2025, arXiv:2504.08837.

    Args:
        capacity: rollouts in the replay buffer; the oldest leave first.
        alpha: power of the advantage; 0 draws all rollouts with an advantage alike.
        max_age: steps after which a rollout is not drawn any more; 0 sets no limit.
        max_share: largest share of drawn rollouts in the batch.
        draw: draws positions by weights: `without_replacement` or `with_replacement`.
    """

    capacity: PositiveInt = 1024
    alpha: NonNegative = 1.0
    max_age: NonNegativeInt = 0
    max_share: Fraction = 1.0
    draw: Draw = without_replacement

    @property
    def requires(self) -> Requires:
        return Requires(replay_buffer=self.capacity, signals=("off_context", "sampled"))

    def __call__(self, request: ReplayRequest) -> ReplayPlan:
        has_advantage = request.magnitude > 0
        vacant = (~has_advantage).nonzero()[:, 0].tolist()
        most = int(float(self.max_share) * len(has_advantage))
        weights = draw_weights(request, self.alpha, self.max_age)
        drawn = tuple(self.draw(weights, min(len(vacant), most), request.rng))
        trained = torch.ones_like(has_advantage)
        trained[vacant[len(vacant) - len(drawn) :]] = False
        return ReplayPlan(drawn, trained, has_advantage & of_this_step(request.batch))


def draw_weights(
    request: ReplayRequest, alpha: NumberOrSchedule = 1.0, max_age: int = 0
) -> Float[Tensor, "K"]:
    """|A|^alpha of the buffer's rollouts; 0 for those without advantage or beyond the age limit.

    >>> from grupo.testing.batches import make_batch
    >>> buffer = ReplayCandidates(torch.tensor([1.0, 0.5, 0.0, 0.5]), torch.tensor([0, 1, 1, 2]))
    >>> request = ReplayRequest(make_batch([0]), buffer, 3, Random(0))
    >>> draw_weights(request).tolist(), draw_weights(request, 0.0, 2).tolist()
    ([1.0, 0.5, 0.0, 0.5], [0.0, 1.0, 0.0, 1.0])
    """
    priority, step = request.replay_buffer.priority, request.replay_buffer.step
    weight = priority.double() ** float(alpha)
    weight[priority <= 0] = 0.0
    if max_age:
        weight[request.step - step > max_age] = 0.0
    return weight


def of_this_step(batch: Batch) -> Bool[Tensor, "R"]:
    """True for rollouts that the policy sampled in this step, in the context they are trained in.

    A part of a rollout may be a forced text. Replayed rollouts have an action that was sampled
    elsewhere, and demonstrations have no sampled one.
    """
    rows = (off_context_mask(batch) & batch.mask).any(1).double()
    count = rows.new_zeros(len(batch.reward)).index_add(0, batch.rollout, rows)
    return (count == 0) & ~is_demonstration(batch)
