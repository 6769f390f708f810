"""Unlikeliness reward: unlikely correct answers earn more. He et al., 2025, arXiv:2506.02355."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def unlikeliness(
    group_size: PositiveInt = 32,
    rank_coef: Fraction = 0.25,
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.1,
    epochs: PositiveInt = 2,
) -> Method:
    """GRPO on r (1 - rank_coef rank / G): equally correct answers differ, and solved groups are
    trained on.

    The loss is the mean over all tokens of PPO's clipped loss and kl_coef k3.
    Several epochs are the paper's other lever: later passes update unlikely answers, likely ones
    being clipped.

    Args:
        group_size: rollouts per task.
        rank_coef: weight of the rank (authors' code: 0.25).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy (authors' code: 0.1).
        epochs: passes over the rollouts of a step (authors' code: 2).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(UnlikelinessReward(rank_coef), Center(), ScaleByStd()),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        aggregation=token_mean,
        updates=Updates(epochs),
    )


@component
class UnlikelinessReward:
    """r (1 - rank_coef rank / G), rank 0 for the least likely rollout of the group.

    Likelihood is the mean log-probability of a rollout's tokens when sampled; equal ones share
    their mean rank.

    Args:
        rank_coef: weight of the rank.
    """

    rank_coef: Fraction

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        rank = group_ops.rank(MeanSignal()(x, batch), batch.group)
        return x * (1 - self.rank_coef * rank / group_ops.count(x, batch.group))


PAPER = Paper(
    title="Rewarding the Unlikely: Lifting GRPO Beyond Distribution Sharpening",
    use="Many attempts are made at test time: pass@n falls while pass@1 rises.",
    tags=("exploration", "reward"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("unlikeliness-reward",),
    source=Source(
        "code",
        (
            "AndreHe02/rewarding-unlikely-release, verl/trainer/ppo/ray_lean_trainer.py, "
            "verl/trainer/config/lean_trainer.yaml and examples/lean/grpo.sh"
        ),
    ),
    plan=(
        "grpo.sh: rollouts with an advantage are collected until there are 256 or more, and "
        "trained on in minibatches of 256, ppo_epochs 2: 2 updates per step at 256 rollouts, else "
        "2 for each 256 begun (dynamic_update); here one batch, so 2"
    ),
    missing=(
        "The bound of 20 on the gradient norm, above which an update is skipped: a recipe's.",
        "A proof that does not end with its code block counts as wrong there "
        "(penalize_extra_text).",
    ),
    deviations=(
        (
            "The code ranks by mean log-probability, the paper by the probability of the whole "
            "answer: here the code's."
        ),
        "Equally likely rollouts share their rank; the code breaks ties by order.",
        (
            "Groups that are all solved are trained on; grpo.sh drops them and those without a "
            "success (advantage_threshold)."
        ),
        "The mean is over the tokens of an update; in the release, over 8 rollouts at a time.",
    ),
    audit=(
        "ranks, reward, token mean (use_token_level_loss of lean_trainer.yaml, which grpo.sh "
        "leaves), constants and number of updates compared with ray_lean_trainer.py and grpo.sh"
    ),
    shown=("docs/claims.md#modes",),
)
