"""Critique-GRPO: one second attempt in each group. Zhang et al., 2025, arXiv:2506.03106."""

from collections.abc import Mapping

import torch
from torch import Tensor

from grupo.algo import ratios
from grupo.algo.advantages import Center
from grupo.algo.aggregation import ConstantLength
from grupo.algo.data_source import REQUIRES_OFF_CONTEXT, off_context_mask
from grupo.algo.losses import EntropyBonus, Loss, PolicyShaping, WeightedReinforce
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithCritique

PAPER = Paper(
    title="Critique-GRPO: Advancing LLM Reasoning with Natural Language and Numerical Feedback",
    use="The model fails alone and succeeds once it is told what was wrong.",
    checked=("golden", "laws", "run"),
    example="critique_grpo(max_length=64)",
    catalogue=("critique-grpo",),
)


@component
class SelectByContext(Loss):
    """`on_context_loss` where the action was drawn behind this prompt, `off_context_loss` where behind another."""

    on_context_loss: Loss
    off_context_loss: Loss

    @property
    def required_signals(self) -> frozenset[str]:
        return super().required_signals | REQUIRES_OFF_CONTEXT

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return torch.where(
            off_context_mask(batch),
            self.off_context_loss(pi, batch),
            self.on_context_loss(pi, batch),
        )

    def metrics(self, pi: Signals, batch: Batch) -> Mapping[str, Tensor]:
        return {
            **self.on_context_loss.metrics(pi, batch),
            **self.off_context_loss.metrics(pi, batch),
        }


def critique_grpo(
    max_length: int, group_size: int = 8, shaping_constant: float = 0.1, entropy_coef: float = 0.001
) -> Method:
    """-r A on own tokens, -f(pi) A on those of the second attempt, f(p) = p / (p + `shaping_constant`).

    Each of `group_size` answers is criticised (right or wrong, and the right answer) and tried again;
    the best second attempt takes the first place of the group, behind the plain question.
    A = r - mean(r); sums over tokens are divided by `max_length`; `entropy_coef` times H is paid.
    """
    # As the release, whose clip is off and which keeps any refinement where none is right; the best
    # is our choice. Critiques of a stronger model: Refined(..., critique=yours).
    loss = SelectByContext(
        WeightedReinforce(ratios.token), PolicyShaping(shaping_constant)
    ) + EntropyBonus(entropy_coef)
    sample = WithCritique(GroupSampler(group_size))
    return Method(
        sampler=sample, advantage=Center(), loss=loss, aggregation=ConstantLength(max_length)
    )
