"""MT-GRPO: turns before the last earn their own reward. Zeng et al., 2025, arXiv:2505.11821."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.token_table import discounted_sum, shift_left, sum_per_rollout
from grupo.algo.advantages.turn_table import turn_mask, turns_to_tokens
from grupo.algo.losses import KL, Clip
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Reinforcing Multi-Turn Reasoning in LLM Agents via Turn-Level Credit Assignment",
    use="Agents that use tools before they answer, where a good call can be told from a bad one.",
    checked=("golden", "laws", "reference", "run"),
)
ZSCORE = chain(Center(), ScaleByStd(eps=1e-4))


@component
class TurnLevelAdvantage:
    """z(outcome) + coef z(what turns were paid) before the last turn, z(outcome) in it.

    A rollout of one turn, which used no tool, is credited with z(outcome + paid).
    """

    turn_coef: float

    @property
    def required_signals(self) -> frozenset[str]:
        """What turns were paid, the outcome not among it."""
        return frozenset({"step/reward"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        paid = sum_per_rollout(batch.signals["step/reward"], batch).to(x)
        outcome, turns, both = ZSCORE(x, batch), ZSCORE(paid, batch), ZSCORE(x + paid, batch)
        before = shift_left(discounted_sum(turn_mask(batch).double(), 1.0)) > 0
        several = before.any(1)
        A = torch.where(several, outcome, both)[:, None] + self.turn_coef * turns[:, None] * before
        return turns_to_tokens(A, batch)


def mt_grpo(
    group_size: int = 8, turn_coef: float = 1.0, clip_eps: float = 0.2, kl_coef: float = 0.04
) -> Method:
    """A = A_outcome + `turn_coef` A_turn in turns before the last, A_outcome in the last.

    Both are GRPO's z-scores: of the reward, and of the sum of what the turns were paid
    (step/reward, without the outcome).
    """
    # Two turns, a call and an answer, are the paper's case (v1) and the authors' code
    # (SiliangZeng/Multi-Turn-RL-Agent); more turns share one A_turn. eps = 1e-4, as there; `group_size`
    # and `kl_coef` are our choice.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=TurnLevelAdvantage(turn_coef),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
    )
