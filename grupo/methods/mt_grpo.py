"""MT-GRPO: turns before the last have their own reward. Zeng et al., 2025, arXiv:2505.11821."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.token_table import discounted_sum, shift_left
from grupo.algo.advantages.turn_table import sum_per_turn, turn_mask, turns_to_tokens
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def mt_grpo(
    group_size: PositiveInt = 21,
    turn_coef: NonNegative = 1.0,
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.0,
) -> Method:
    """A = A_outcome + turn_coef A_turn in turns before the last, A_outcome in the last.

    Both are GRPO's z-scores: of the reward, and of the sum of the rewards ("step/reward") of the
    turns before the last. The last turn's, which holds the outcome, is not read.

    A step has 2 updates, each on the whole batch.

    Args:
        group_size: rollouts per task (authors' script: 21).
        turn_coef: weight of the turns' advantage (authors' script: 1.0).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy (authors' script: 0.0).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=TurnLevelAdvantage(turn_coef),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        updates=Updates(epochs=2),
    )


ZSCORE = chain(Center(), ScaleByStd(eps=1e-4))


@component
class TurnLevelAdvantage:
    """z(outcome) + turn_coef z(turn rewards) before the last turn, z(outcome) in it.

    A rollout of one turn, without a tool call, has z(outcome + turn rewards). The turn rewards are
    those of the turns before the last.

    Args:
        turn_coef: weight of the turn rewards.
    """

    turn_coef: NumberOrSchedule

    requires = Requires(signals=("step/reward",))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        is_not_last = shift_left(discounted_sum(turn_mask(batch).double(), 1.0)) > 0
        turn_reward = (sum_per_turn(batch.signals["step/reward"], batch) * is_not_last).sum(1).to(x)
        outcome = ZSCORE(x, batch)
        turns = ZSCORE(turn_reward, batch)
        both = ZSCORE(x + turn_reward, batch)
        base = torch.where(is_not_last.any(1), outcome, both)[:, None]
        A = base + self.turn_coef * turns[:, None] * is_not_last
        return turns_to_tokens(A, batch)


PAPER = Paper(
    title="Reinforcing Multi-Turn Reasoning in LLM Agents via Turn-Level Credit Assignment",
    use="Agents that use tools before they answer, where good and bad calls can be distinguished.",
    tags=("agents", "process-reward"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "SiliangZeng/Multi-Turn-RL-Agent: verifiers/trainers/mt_grpo_env_trainer.py, "
        "scripts/run_mt_grpo.sh",
    ),
    plan="run_mt_grpo.sh: num_iterations 2, so two passes over each batch",
    missing=(
        "Later versions of the paper, with PPO and more turns.",
        "The rewards are left to the environment: in the release's task 0.2 for tool calls that "
        "work and 0.5 for an answer found by search, then 1 for the exact answer, 0.5 for one that "
        "contains it, and the format.",
    ),
    deviations=(
        (
            "More than two turns share one A_turn: two turns, a call and an answer, are the "
            "case of the code."
        ),
        (
            "The outcome is the reward, which in `MultiTurn` also holds the rewards of the turns; "
            "the code has separate functions for both."
        ),
        "The mean is over answers, as GRPO's: the trainer's is over the tokens of a micro-batch.",
    ),
    audit=(
        "advantages, eps 1e-4, clip, constants and plan compared with the trainer and the "
        "run script"
    ),
    shown=("docs/claims.md#progress",),
)
