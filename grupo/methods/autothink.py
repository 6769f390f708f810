"""AutoThink: keep both modes alive, then let short ones win. Tu et al., 2025, arXiv:2505.10832."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Learning When to Think: Shaping Adaptive Reasoning in R1-Style Models via Multi-Stage"
    " RL",
    use="A reasoning model thinks about everything; it is to learn when it need not.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("autothink",),
)


@component
class BalancedModeReward:
    """r by mode and outcome, shaped by length, drawn to less where a mode has more than `mode_fraction`.

    Thinking: right 1, wrong 0, drawn to 0 and -1; at once: 2 and -1, drawn to 1 and -2; by
    d = clip(slope (share of the mode in the batch - rate), 0, 1). Length: of the right of a group
    e^(-shape z) - 1 is added, of its wrong subtracted, z their standardised lengths.
    """

    mode_fraction: float
    length_coef: float
    slope: float = 2.0
    required_reward_terms = ("correct", "think", "format")  # right, thinks, can be read: above 1/2
    needs_whole_batch = True  # modes are balanced over it

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        right, think, valid = (
            batch.reward_terms[name] > 0.5 for name in self.required_reward_terms
        )
        right, wins = right & valid, (right & valid).to(x)
        r = torch.where(think, wins, 3 * wins - 1) * valid
        alike, L = 2 * batch.group + right, batch.lengths
        z = (L - group_ops.mean(L, alike)) / group_ops.std(L, alike).clamp(min=1e-6)
        r = r + (2 * wins - 1) * (torch.exp(-self.length_coef * z) - 1)
        share = torch.where(think, think.to(x).mean(), 1 - think.to(x).mean())
        d = (self.slope * (share - self.mode_fraction)).clamp(0, 1)
        return (1 - d) * r + d * torch.where(think, wins - 1, 3 * wins - 2)


def autothink(group_size: int = 8, mode_fraction: float = 0.5, length_coef: float = 0.0) -> Method:
    """Stage 1: `mode_fraction` 0.5; stage 2: `mode_fraction` 1, no balance; stage 3: also `length_coef` 0.05, length.

    Reward terms: "correct"; "think", 0 if the answer begins by closing the thinking; "format", 0 if it
    never closes it or nothing can be read (r = 0 before balance). A = (r - mean(r)) / std(r).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(BalancedModeReward(mode_fraction, length_coef), Center(), ScaleByStd()),
    )
