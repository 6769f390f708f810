"""Lambda-GRPO: learns the weight of length. Wang et al., 2025, arXiv:2510.06870."""

import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip, Loss
from grupo.algo.token_level import row_mean
from grupo.core import group_ops
from grupo.core.aux_heads import LearnedScalar
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def lambda_grpo_length(
    group_size: PositiveInt = 8, length_scale: NonNegative = 1 / 9, clip_eps: NonNegative = 0.2
) -> Method:
    """loss = token mean of f x surrogate, f = G softmax_i(h_i^lambda), h = 1 + length_scale z_i.

    z_i is the standardised length; lambda is learned, from 0, which is DAPO's token mean. Below 0
    long answers count less, above 0 more.

    Args:
        group_size: rollouts per task (our choice).
        length_scale: scale of z_i (r in the paper, as third parties quote it).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
    """
    loss = LengthPreferenceLoss(Clip(clip_eps, clip_eps), length_scale)
    return Method(sampler=GroupSampler(group_size), loss=loss, aggregation=token_mean)


@component
class LengthPreferenceLoss(Loss):
    """f x loss, f = G softmax(h^lambda) in the group, h = 1 + length_scale x standardised length.

    Args:
        loss: loss that is weighted.
        length_scale: scale of the standardised length.
    """

    loss: Loss
    length_scale: NumberOrSchedule

    requires = Requires(
        recomputed_signals=("lambda",), heads=(LearnedScalar("lambda"),), coupled_rows=True
    )

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        L = batch.lengths
        g = batch.group
        exponent = row_mean(pi["lambda"], batch)
        z = (L - group_ops.mean(L, g)) / (group_ops.population_std(L, g) + 1e-8)
        power = (1 + self.length_scale * z).clamp(min=1e-3).to(exponent) ** exponent
        power = power.masked_fill(batch.row_group[:, None] != g, -torch.inf)
        f = power.softmax(1).gather(1, batch.rollout[:, None])
        return group_ops.count(L, g)[batch.rollout, None].to(f) * f * self.loss(pi, batch)


PAPER = Paper(
    title="lambda-GRPO: Unifying the GRPO Frameworks with Learnable Token Preferences",
    use="It is not clear whether long answers should count more or less.",
    tags=("aggregation", "length"),
    checked=("golden", "properties", "run"),
    source=Source(
        "third_party",
        "Wodlfvllf/grpo-composer: core/aggregation/group_learnable.py and "
        "configs/papers/lambda_grpo.yaml",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        (
            "lambda's own optimizer, SGD with a learning rate of 0.1: here the head's Adam "
            "moves it less, so the method stays close to a token mean."
        ),
        "The third party's KL of 0.01 to the reference.",
    ),
    deviations=(
        "group_size and clip_eps are our choice (third party: 4 and 0.2).",
        "h is at least 1e-3, our choice (third party: 1e-6).",
    ),
    audit=(
        "standardised length (population's deviation), softmax of h^lambda, token mean, start at 0 "
        "and length_scale 1/9 compared with the third party's code"
    ),
    shown=("docs/claims.md#padded",),
)
