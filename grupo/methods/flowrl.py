"""FlowRL: matches the reward distribution by flow balance. Zhu et al., 2025, arXiv:2509.15207."""

from torch import Tensor

from grupo.algo import ratios
from grupo.algo.losses import Loss
from grupo.algo.minibatches import Updates
from grupo.algo.token_level import row_mean
from grupo.core.aux_heads import LinearHead
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def flowrl(
    group_size: PositiveInt = 8, reward_scale: Positive = 15.0, clip_eps: NonNegative = 0.2
) -> Method:
    """loss = mean over answers of w (log Z + mean_t log pi - reward_scale A - mean_t log ref)^2.

    A = (r - mean(r)) / std(r); log Z is learned; w = prod_t pi / old is held constant.

    A step makes 16 updates, one on each of 16 minibatches.

    Args:
        group_size: rollouts per task (authors' scripts: 8).
        reward_scale: weight of the advantage (beta in the paper) (authors' code: 15.0).
        clip_eps: w is clamped to [1 - clip_eps, 1 + clip_eps] (paper: 0.2).
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=FlowBalanceLoss(reward_scale, clip_eps),
        updates=Updates(minibatches=16),
    )


@component
class FlowBalanceLoss(Loss):
    """w (log Z + mean log pi - reward_scale A - mean log ref)^2, w the clipped sequence ratio,
    constant.

    Args:
        reward_scale: weight of the advantage in the balance (beta in the paper).
        clip_eps: w is clamped to [1 - clip_eps, 1 + clip_eps].
    """

    reward_scale: NonNegative
    clip_eps: NonNegative

    # log Z, read from the state before the row's first action
    requires = Requires(
        signals=("logp@ref",),
        recomputed_signals=("log_partition",),
        coupled_sequences=True,
        surrogate_gradient=True,
        heads=(LinearHead("log_partition"),),
    )

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        is_first = batch.mask & (batch.mask.cumsum(1) == 1)
        log_z = pi["log_partition"].where(is_first, 0.0).sum(1, keepdim=True)
        log_ratio: Tensor = row_mean(pi.logp - batch.signals["logp@ref"], batch)
        imbalance = log_z + log_ratio - self.reward_scale * row_mean(batch.advantage, batch)
        w = ratios.token_log_ratio(pi, batch).sum(1, keepdim=True).exp().detach()
        return (w.clamp(1 - self.clip_eps, 1 + self.clip_eps) * imbalance**2).expand_as(pi.logp)


PAPER = Paper(
    title="FlowRL: Matching Reward Distributions for LLM Reasoning",
    use="Many different good answers are wanted, not one mode of the reward.",
    tags=("exploration", "kl"),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "Xuekai-Zhu/FlowRL, folder verl@FlowRL: verl/workers/actor/dp_actor.py and "
        "command/training/math/flowrl_7B_math.sh",
    ),
    plan="flowrl_7B_math.sh: train batch 512, minibatch 32 prompts: 16 updates per step",
    deviations=(
        (
            "The release computes the clip of w but multiplies by the raw w; the recipe for verl "
            "caps w at 10."
        ),
        (
            "log Z is a linear head on the last state of the task, in the release three layers on "
            "the mean of its states. Its gradient does not reach the policy, in the release it "
            "does."
        ),
        (
            "The mean is over the answers of a minibatch; in the release every micro-batch counts "
            "the same, whatever its number of answers."
        ),
    ),
    audit=(
        "loss, constants, group and batch sizes compared with compute_flowrl_objective and the "
        "scripts for 7B and 32B"
    ),
    shown=("docs/claims.md#modes",),
)
