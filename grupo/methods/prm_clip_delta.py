"""Clip and Delta: process rewards that cannot be farmed. Gao et al., 2024, arXiv:2410.15115."""

from torch import Tensor

from grupo.algo.advantages import chain
from grupo.algo.advantages.gae import GAE, VALUE_HEAD
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
from grupo.core.aux_heads import FeatureHead
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def prm_clip_delta(
    group_size: PositiveInt = 1,
    score_threshold: NonNegative = 0.5,
    process_coef: NonNegative = 0.05,
    value_head: FeatureHead = VALUE_HEAD,
) -> Method:
    """PPO whose reward is success plus clipped differences of the steps' scores.

    Signals: "step/index" is the index of a step of the answer, "step/prm" the score of the prefix
    that ends with the step.

    A step makes 3 updates, 3 passes over its rollouts.

    Args:
        group_size: rollouts per task.
        score_threshold: score from which a step has no penalty (our choice).
        process_coef: weight of the process reward (our choice).
        value_head: linear on detached features, on shared ones, or on a model of its own.
    """
    # Clip, then Delta, is the paper's best combination.
    advantage = chain(
        ClippedProcessReward(score_threshold, process_coef),
        GAE(gamma=1.0, gae_lambda=0.95, value_head=value_head),
    )
    return Method(
        sampler=GroupSampler(group_size),
        advantage=advantage,
        loss=Clip(0.2, 0.2) + ValueLoss(),
        aggregation=token_mean,
        updates=Updates(epochs=3),
    )


@component
class ClippedProcessReward:
    """x at the last token, and process_coef d_k at the end of step k of K.

    c_k = min(p_k - score_threshold, 0) of the score p_k; d_k = c_k - c_(k+1), d_(K-1) = c_(K-1),
    d_K = 0. The return from step k on is c_k, however many steps follow.

    Args:
        score_threshold: score from which a step has no penalty (eta in the paper).
        process_coef: weight of the process reward.
    """

    score_threshold: NumberOrSchedule
    process_coef: NumberOrSchedule

    # index of each token's step, from 0, and that step's score on all its tokens
    requires = Requires(signals=("step/index", "step/prm"))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        steps = with_steps_as_turns(batch)
        exists = turn_mask(steps)
        score = label_per_turn(batch.signals["step/prm"], steps)
        c = score.sub(self.score_threshold).clamp(max=0)
        c = c.where(exists & (shift_left(exists.double()) > 0), 0.0)  # 0 in the last step
        return at_last_token(x, batch) + at_turn_ends(
            self.process_coef * (c - shift_left(c)), steps
        )


PAPER = Paper(
    title="On Designing Effective RL Reward at Training Time for LLM Reasoning",
    use="The policy has learned to exploit a process reward model by repeating easy steps.",
    tags=("process-reward", "critic"),
    checked=("golden", "properties", "run"),
    catalogue=("prm-clip-delta",),
    source=Source(
        "third_party",
        "a public page that describes a figure of the paper; the paper's text was not available",
    ),
    plan="not stated in any source that was opened; the 3 epochs are those of PPO",
    deviations=(
        "By default the critic is linear on detached features, not a model of its own: value_head.",
        "Our reading: Clip acts before Delta; PPO's settings, without a KL, are ours.",
        "Threshold and weight are our choice: most sound steps should score above the threshold.",
    ),
    audit=(
        "bound of the accumulated reward compared with the abstract, the formula with the "
        "catalogue's row and the file's own account; the paper's text could not be opened"
    ),
)
