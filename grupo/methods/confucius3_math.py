"""Confucius3-Math: hard tasks weigh more, target entropy. Wu et al., 2025, arXiv:2506.18330."""

from torch import Tensor

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip, Loss
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler


def confucius3_math(
    group_size: PositiveInt = 8,
    target_entropy: NonNegative = 0.55,
    entropy_coef: NonNegative = 0.001,
) -> Method:
    """DAPO with A = (R - mu) (1.256 - 0.256 mu), R = +1 or -1, and a target for the entropy H.

    The loss gains entropy_coef |H - target_entropy|; mu is the mean of R over the group.

    Args:
        group_size: rollouts per task (our choice).
        target_entropy: entropy that the loss steers to, in nats.
        entropy_coef: weight of the entropy loss.
    """
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), 10),
        sampler=GroupSampler(group_size),
        filter=keep_nonzero_std,
        advantage=hardness_weighted_advantage,
        loss=Clip(0.2, 0.28) + entropy_coef * EntropyTargetLoss(target_entropy),
        aggregation=token_mean,
    )


def hardness_weighted_advantage(x: Tensor, batch: Batch) -> Tensor:
    """(R - mu) (1.256 - 0.256 mu), (R,), with R = 2 r - 1 and mu its mean over the group."""
    R = 2 * x - 1
    mu = group_ops.mean(R, batch.group)
    return (R - mu) * (1.256 - 0.256 * mu)


@component
class EntropyTargetLoss(Loss):
    """|H - target_entropy| of the mean entropy H over all tokens, (N, T).

    Each token has sign(H - target_entropy) (H_t - target_entropy), whose token mean that is.

    Args:
        target_entropy: in nats.
    """

    target_entropy: NumberOrSchedule

    requires = Requires(recomputed_signals=("entropy",), whole_batch=True, coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        H = pi.entropy.masked_fill(~batch.mask, 0.0).sum() / batch.mask.sum().clamp(min=1)
        return (H - self.target_entropy).sign().detach() * (pi.entropy - self.target_entropy)


PAPER = Paper(
    title="Confucius3-Math: A Lightweight High-Performance Reasoning LLM for Chinese K-12 "
    "Mathematics Learning",
    use="In a long run the entropy drifts up or down, and tasks differ widely in difficulty.",
    tags=("entropy", "curriculum"),
    checked=("golden", "properties", "run"),
    catalogue=("confucius3-math",),
    source=Source(
        "paper",
        "sections 6.1 to 6.3, eq. 1 to 3, table 2 (netease-youdao/Confucius3-Math, "
        "Confucius3-Math.pdf)",
    ),
    plan="section 6.3: batches of 256 samples; the number of updates of a batch is not stated; one "
    "update per step",
    missing=(
        "Recent sample recovery, which keeps spare valid groups for the next step.",
        (
            "The stages with contexts of 4K, 8K and 16K tokens: the first is GRPO with the entropy "
            "target, the others are DAPO with hardness weights (table 2)."
        ),
        "The filter of answers with a wrong format or repetitive text, which cannot be correct "
        "(section 5).",
    ),
    deviations=(
        (
            "The entropy target, hardness weights and dynamic sampling act together; in the report "
            "the first ends where the others begin."
        ),
        "The report does not give group, clip and rounds of generation: clip and rounds are DAPO's,"
        " the group of 8 is our choice (DAPO: 16).",
        "The sum over tokens is divided by their number.",
    ),
    audit=(
        "formulas and constants compared with the report; the repository was opened and has no "
        "training code"
    ),
)
