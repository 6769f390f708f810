"""Reg-GRPO: regress the advantage, no clip and no minimum. Park et al., 2025, arXiv:2506.07464."""

import torch

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import KL, Loss
from grupo.algo.losses.contrastive import mean_per_rollout, rollout_log_ratio
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="DeepVideo-R1: Video Reinforcement Fine-Tuning via Difficulty-aware Regressive GRPO",
    use="Several updates are taken on one batch and clipping would stop most of them.",
    checked=("golden", "laws", "run"),
    catalogue=("deepvideo-r1-reg-grpo",),
)


@component
class AdvantageRegression(Loss):
    """(A - (rho - mean rho) / std rho)^2, rho a rollout's log-ratio; std 1 where all are equal."""

    @property
    def couples_rows(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        rho, g = rollout_log_ratio(pi, batch), batch.group
        centred = rho - group_ops.mean(rho, g)
        var = group_ops.mean(centred**2, g)
        std = torch.where(var > 1e-12, var, 1.0).sqrt()
        return broadcast_to_tokens(
            (mean_per_rollout(batch.advantage, batch) - centred / std) ** 2, batch
        )


def reg_grpo(group_size: int = 8, kl_coef: float = 0.04) -> Method:
    """loss = mean over answers of (A_i - Ahat_i)^2 + `kl_coef` k3, Ahat = (rho - mean(rho)) / std(rho).

    A = (r - mean(r)) / std(r) and rho = log pi - log pi_old of a whole answer: where KL to pi_old
    is penalised, centring removes log Z and scaling the penalty's strength.
    """
    # The square is the natural reading of the paper's regression; both deviations divide by n, and
    # at the first update, where all rho are 0, it is the centred rho that is regressed: our choice,
    # as are group and kl. The paper's noise on easy videos and hints on hard ones are the
    # environment's and the sampler's.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(std=group_ops.population_std)),
        loss=AdvantageRegression() + kl_coef * KL(),
        aggregation=group_mean,
    )
