"""CPPO: train only on rollouts of large advantage. Lin et al., 2025, arXiv:2503.22342."""

from torch import Tensor

from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def cppo(
    group_size: PositiveInt = 16,
    prune_fraction: Fraction = 0.5,
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.04,
) -> Method:
    """GRPO's A over the whole group; the loss is a mean over the rollouts of largest |A|.

    loss = 1 / k sum over the k kept of 1 / L_i sum_t -min(R A, clip(R) A) + kl_coef k3,
    k = (1 - prune_fraction) G.

    A step makes 2 updates: 2 passes over its batch.

    Args:
        group_size: G, rollouts per task.
        prune_fraction: fraction of a group that is not trained on (paper: 1/2 to 15/16 of 16).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy.
    """
    return Method(
        sampler=GroupSampler(group_size),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        aggregation=TopAdvantageMean(prune_fraction),
        updates=Updates(epochs=2),
    )


@component
class TopAdvantageMean:
    """Aggregation 1 / (K L_i) for a group's k rows of largest |A|, K of them in the batch.

    k = floor(G (1 - prune_fraction)), at least 1, of G rows with actions. Ties for the last places
    share them.

    Args:
        prune_fraction: fraction of a group's rows that have weight 0.
    """

    prune_fraction: Fraction

    def __call__(self, batch: Batch) -> PerAction:
        length = batch.mask.sum(1)
        abs_advantage = (batch.advantage.double() * batch.mask).abs().sum(1) / length.clamp(min=1)
        kept = self._kept_fraction(abs_advantage, length > 0, batch)
        weight = kept / kept.sum().clamp(min=1e-12) / length.clamp(min=1)
        return (weight[:, None] * batch.mask).to(batch.old_logp)

    def _kept_fraction(self, abs_advantage: Tensor, has_actions: Tensor, batch: Batch) -> Tensor:
        """Fraction of each row that is kept, in [0, 1]."""
        same_group = batch.row_group[:, None] == batch.row_group
        same = same_group & has_actions & has_actions[:, None]
        tied = same & ((abs_advantage - abs_advantage[:, None]).abs() <= 1e-9)
        above = (same & (abs_advantage > abs_advantage[:, None]) & ~tied).sum(1)
        k = (same.sum(1).double() * (1 - self.prune_fraction) + 1e-9).floor().clamp(min=1)
        return ((k - above) / tied.sum(1).clamp(min=1)).clamp(0, 1) * has_actions


PAPER = Paper(
    title="CPPO: Accelerating the Training of Group Relative Policy Optimization-Based"
    " Reasoning Models",
    use="Most rollouts of a group are alike, and the few that differ should decide the update.",
    tags=("filtering",),
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "code",
        "lzhxmu/CPPO, scripts/CPPO_gsm.sh, recipes/gsm8k/Qwen2.5-1.5B-Instruct.yaml and "
        "src/open_r1/grpo_trainer_gsm.py",
    ),
    plan=(
        "Qwen2.5-1.5B-Instruct.yaml: num_iterations 2; gsm8k_cppo.sh for verl: ppo_epochs 2: 2 "
        "updates per step"
    ),
    missing=(
        (
            "Dynamic completion allocation: the places of pruned answers are filled with answers "
            "to further prompts."
        ),
        "The dual clip of 10 of the release for verl.",
        "The release's reward for GSM8K: 2 for the exact answer or 1.5 for an equal number, and 1 "
        "for the format.",
    ),
    deviations=(
        "Each row of a rollout counts separately.",
        "Rows tied for the last places share them; the release keeps those that topk returns.",
        "Pruned rows still have a forward pass, at weight 0; `pods` avoids it.",
        (
            "The release for TRL prunes over the rows of a device, not of a group, and takes the "
            "mean over tokens. Standard deviations gain 1e-4 there, 1e-6 here."
        ),
        "The release for verl prunes over all rows of a step; its mean is over answers, as here.",
    ),
    audit=(
        "pruning, KL, group and iterations compared with the scripts and recipes for TRL and verl"
    ),
    shown=("docs/claims.md#difficulty",),
)
