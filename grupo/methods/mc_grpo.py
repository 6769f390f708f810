"""MC-GRPO: the median is the baseline. Kim, 2026, arXiv:2601.22582."""

from torch import Tensor

from grupo.algo.advantages import Center, chain
from grupo.algo.aggregation import sequence_mean
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, PerRollout
from grupo.core.component import component
from grupo.core.numbers import NonNegative, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def mc_grpo(
    group_size: PositiveInt = 9,
    eps: Positive = 1e-3,
    clip_eps: NonNegative = 0.2,
    kl_coef: NonNegative = 0.04,
) -> Method:
    """A = (r - median) / (MAD + eps) over an odd group_size; the median rollout is not trained on.

    loss = mean over the others of mean over tokens of -min(R A, clip(R, 1 -+ clip_eps) A) + kl_coef
    k3. Each of k rollouts with the median reward has the weight 1 - 1 / k.

    A step has 2 updates, each on the whole batch.

    Args:
        group_size: rollouts per task, odd; one of them is the pivot.
        eps: added to the denominator.
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy (authors' recipes: 0.04).
    """
    # With rewards 0 and 1 the MAD is 0 unless about half are correct, and |A| reaches 1 / eps: the
    # authors leave that to Adam and gradient clipping; eps = 1 keeps |A| <= 1.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(group_ops.median), ScaleByMAD(eps)),
        loss=Clip(clip_eps, clip_eps) + kl_coef * KL(),
        aggregation=mean_of_other_rows,
        updates=Updates(epochs=2),
    )


@component
class ScaleByMAD:
    """x / (MAD + eps), MAD the median of |x| in the group, x being centred on its median.

    Args:
        eps: added to the denominator.
    """

    eps: Positive = 1e-3

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x / (group_ops.median(x.abs(), batch.group) + self.eps)


def mean_of_other_rows(batch: Batch) -> PerAction:
    """`sequence_mean` over all rows but those of the pivots, which weigh 0, (N, T).

    >>> from grupo.testing.batches import make_batch
    >>> mean_of_other_rows(make_batch(group=[0, 0, 0], reward=[0.9, 0.5, 0.2])).flatten().tolist()
    [0.5, 0.0, 0.5]
    """
    kept = (1 - pivot_share(batch)).to(batch.old_logp)
    weight = sequence_mean(batch) * kept[batch.rollout, None]
    return weight / weight.sum().clamp(min=1e-9)


def pivot_share(batch: Batch) -> PerRollout:
    """1 for the pivot of each group, the rollout nearest its median reward, else 0, (R,).

    Each of k such rollouts is 1 / k of the pivot.
    """
    distance = (batch.reward - group_ops.median(batch.reward, batch.group)).abs()
    return group_ops.lowest_share(distance, 1, batch.group)


PAPER = Paper(
    title="MC-GRPO: Median-Centered Group Relative Policy Optimization for Small-Rollout "
    "Reinforcement Learning",
    use="Groups have 3 to 9 rollouts, so that one odd reward flips signs around the mean.",
    tags=("advantage",),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("mc-grpo",),
    source=Source(
        "code",
        "lotusroot-kim/MC-GRPO: src/open_r1/grpo_trainer_math.py, "
        "recipes/math/Qwen2.5-7B-Instruct.yaml and scripts/GRPO_math.sh (loss_type grpo, mc)",
    ),
    plan=(
        "the recipes: num_iterations 2 with one generation per update, so two passes over "
        "each batch"
    ),
    missing=(
        (
            "The correction for vLLM, on by default in the release's TRL 0.26.1: the policy term "
            "of an answer is multiplied by its ratio to the engine, or by 0 where that exceeds 3."
        ),
    ),
    deviations=(
        "clip_eps is TRL's default, which no recipe changes.",
        (
            "A is not multiplied by the group's size over its number of nonzero A, as the trainer "
            "for GSM8K does."
        ),
        (
            "Of k rollouts with the median reward the release leaves out one, by their order. Here "
            "each has the weight 1 - 1 / k, the mean over that choice."
        ),
    ),
    audit=(
        "median, deviation with 1e-3, pivot, KL and iterations compared with the trainer "
        "and the recipes"
    ),
    shown=("docs/claims.md#heavy_tail",),
)
