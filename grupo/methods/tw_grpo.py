"""TW-GRPO: tokens weigh more where the group disagrees. Dang et al., 2025, arXiv:2505.24718."""

import torch

from grupo.algo.advantages import Center, PerRewardTerm, ScaleByStd, chain, identity
from grupo.algo.aggregation import Aggregation, token_mean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Reinforcing Video Reasoning with Focused Thinking",
    use="Answers begin alike and part at a few places, and those should teach most.",
    checked=("golden", "laws", "run"),
    catalogue=("tw-grpo",),
)


@component
class DisagreementWeighted:
    """Inner weight x (1 + (`max_weight` - 1) D), D the disagreement of the group at the action's place.

    D is scaled from 0, where the group agrees most, to 1, where it agrees least.
    """

    max_weight: float
    aggregation: Aggregation = token_mean
    required_signals = frozenset({"disagreement"})

    def __call__(self, batch: Batch) -> PerAction:
        D = batch.signals["disagreement"].masked_fill(~batch.mask, -torch.inf).double()
        most = group_ops.max(D.amax(1), batch.row_group)[:, None]
        D = D.masked_fill(~batch.mask, torch.inf)
        least = group_ops.min(D.amin(1), batch.row_group)[:, None]
        scaled = (D - least) / (most - least).clamp(min=1e-8)
        focus = 1 + (self.max_weight - 1) * scaled.masked_fill(~batch.mask, 0.0)
        return self.aggregation(batch) * focus.to(batch.old_logp)


def tw_grpo(group_size: int = 8, max_weight: float = 1.4, clip_eps: float = 0.2) -> Method:
    """loss = sum w_t l / number of tokens, w_t = 1 + (`max_weight` - 1) (D_t - min D) / (max D - min D).

    D_t = mean_i sum_v (e^d - d - 1), d = mean_i log pi_i - log pi_i at place t of the rollouts of a
    group, ended ones being uniform; l is GRPO's clipped loss, r = correct + format.
    """
    # top and the formula as in the released code; 1.7 in one of its scripts. The weights are
    # constants here; the release does not detach them. `correct_coef` is soft in the paper: the share of
    # the right options that was chosen, 0 if a wrong one was; its inversion of questions is data.
    r = PerRewardTerm(identity, (("correct", 1.0), ("format", 1.0)))
    credit = chain(r, Center(), ScaleByStd())
    return Method(
        sampler=GroupSampler(group_size),
        advantage=credit,
        loss=Clip(clip_eps, clip_eps),
        aggregation=DisagreementWeighted(max_weight),
    )
