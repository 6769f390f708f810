"""Clip and Delta: process rewards that nobody can farm. Gao et al., 2024, arXiv:2410.15115."""

from torch import Tensor

from grupo.algo.advantages import chain
from grupo.algo.advantages.gae import GAE
from grupo.algo.advantages.token_table import at_last_token, shift_left
from grupo.algo.advantages.turn_table import (
    at_turn_ends,
    label_per_turn,
    turn_mask,
    with_steps_as_turns,
)
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.losses.critic import ValueLoss
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="On Designing Effective RL Reward at Training Time for LLM Reasoning",
    use="A process reward model is there, and its policy has learned to repeat easy steps.",
    checked=("golden", "laws", "run"),
    catalogue=("prm-clip-delta",),
)


@component
class ClippedProcessReward:
    """x at the last action, and `process_coef` d_k at the end of step k of K.

    c_k = min(p_k - eta, 0) of the score p_k; d_k = c_k - c_(k+1), d_(K-1) = c_(K-1), d_K = 0. What
    is still to come at step k is c_k, however many steps follow.
    """

    score_threshold: float
    process_coef: float

    @property
    def required_signals(self) -> frozenset[str]:
        """The number of each action's step, from 0 on, and that step's score on all its actions."""
        return frozenset({"step/index", "step/prm"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        steps = with_steps_as_turns(batch)
        there = turn_mask(steps)
        c = label_per_turn(batch.signals["step/prm"], steps).sub(self.score_threshold).clamp(max=0)
        c = c.where(there & (shift_left(there.double()) > 0), 0.0)  # 0 in the last step
        return at_last_token(x, batch) + at_turn_ends(
            self.process_coef * (c - shift_left(c)), steps
        )


def prm_clip_delta(
    group_size: int = 1, score_threshold: float = 0.5, process_coef: float = 0.05
) -> Method:
    """PPO whose reward is success plus `process_coef` times clipped differences of a step's scores.

    step/index numbers the steps of an answer, step/prm holds the score of its prefix up to the step.
    """
    # Clip first, then Delta, as the paper's best; its text was not seen: `score_threshold` and `process_coef` are our
    # choice, so chosen that most sound steps score above `score_threshold`.
    credit = chain(
        ClippedProcessReward(score_threshold, process_coef), GAE(gamma=1.0, gae_lambda=0.95)
    )
    loss, plan = Clip(0.2, 0.2) + ValueLoss(), Updates(epochs=3)
    return Method(
        sampler=GroupSampler(group_size),
        advantage=credit,
        loss=loss,
        aggregation=token_mean,
        updates=plan,
    )
