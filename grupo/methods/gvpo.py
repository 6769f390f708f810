"""GVPO: regresses centred rewards on centred log-ratios. Zhang et al., 2025, arXiv:2504.19599."""

from grupo.algo.advantages import Center
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import Loss
from grupo.algo.losses.contrastive import mean_per_rollout, rollout_log_ratio
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def gvpo(group_size: PositiveInt = 4, reward_temperature: Positive = 0.1) -> Method:
    """loss = mean over groups of sum_i (reward_temperature (rho_i - mean rho) - A_i)^2 / (2 (k -
    1)).

    rho = log pi - log pi_old of a whole answer, A = r - mean(r), k answers. On policy
    the gradient is reward_temperature times that of reward_temperature KL(pi, pi_old) - reward. The
    loss has no importance weights, and its only optimum is proportional to pi_old
    e^(r / reward_temperature).

    A step has 4 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 4).
        reward_temperature: weight of the KL divergence (beta in the paper) (authors' code: 0.1).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=Center(),
        loss=LogRatioRegression(reward_temperature),
        aggregation=group_mean,
        updates=Updates(minibatches=4),
    )


@component
class LogRatioRegression(Loss):
    """k / (k - 1) (reward_temperature (rho - mean rho) - A)^2 / 2, rho the log-ratio of a rollout.

    k is the size of the group.

    Args:
        reward_temperature: weight of the KL divergence (beta in the paper).
    """

    reward_temperature: NonNegative

    requires = Requires(coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        rho = rollout_log_ratio(pi, batch)
        A = mean_per_rollout(batch.advantage, batch)
        k = group_ops.count(rho, batch.group)
        residual = self.reward_temperature * (rho - group_ops.mean(rho, batch.group)) - A
        return broadcast_to_tokens(k / (k - 1).clamp(min=1) * residual**2 / 2, batch)


PAPER = Paper(
    title="GVPO: Group Variance Policy Optimization for Large Language Model Post-Training",
    use="The KL-regularised optimum is the aim, and a step makes several updates without clipping.",
    tags=("off-policy", "kl"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "jszkc/GVPO: GVPO/gvpo_core_algos.py, README and GVPO/run_qwen2-7b_math_gvpo.sh (the same "
        "recipe is in verl-recipe)",
    ),
    plan="run_qwen2-7b_math_gvpo.sh: 1,024 prompts per step in minibatches of 256, 4 updates",
    missing=(
        "Rollouts of policies other than pi_old, which the paper allows: replay and human "
        "demonstrations.",
    ),
    deviations=(
        (
            "The loss is the mean over groups: the release's loss sums over the rollouts of a"
            " micro-batch, which changes the scale of the gradient alone."
        ),
    ),
    audit=(
        "loss compared with compute_policy_loss_gvpo, beta, group size and plan with the run script"
    ),
    shown=("docs/claims.md#reuse",),
)
