"""GVPO: regress centred rewards on centred log-ratios. Zhang et al., 2025, arXiv:2504.19599."""

from grupo.algo.advantages import Center
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import Loss
from grupo.algo.losses.contrastive import mean_per_rollout, rollout_log_ratio
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="GVPO: Group Variance Policy Optimization for Large Language Model Post-Training",
    use="The rollouts come from anywhere, and the KL-regularised optimum is what is wanted.",
    checked=("golden", "laws", "reference", "run"),
)


@component
class LogRatioRegression(Loss):
    """k / (k - 1) (beta (rho - mean rho) - A)^2 / 2, rho the log-ratio of a rollout among k."""

    reward_temperature: float

    @property
    def couples_rows(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        rho, A = rollout_log_ratio(pi, batch), mean_per_rollout(batch.advantage, batch)
        k = group_ops.count(rho, batch.group)
        miss = self.reward_temperature * (rho - group_ops.mean(rho, batch.group)) - A
        return broadcast_to_tokens(k / (k - 1).clamp(min=1) * miss**2 / 2, batch)


def gvpo(group_size: int = 8, reward_temperature: float = 0.1) -> Method:
    """loss = mean over groups of sum_i (`beta` (rho_i - mean rho) - A_i)^2 / (2 (k - 1)).

    rho = log pi - log pi_old of a whole answer, A = r - mean(r), k answers: the gradient of reward
    minus `beta` KL, without importance weights; its only optimum is in proportion to
    pi_old e^(r / `beta`).
    """
    # As the authors' verl recipe codes it. The loss is summed over groups there: the mean is ours,
    # and so is the group.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=Center(),
        loss=LogRatioRegression(reward_temperature),
        aggregation=group_mean,
    )
