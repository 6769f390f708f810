"""ACE: overconfident errors get a larger penalty. Xu et al., 2026, arXiv:2602.21420."""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import ref_log_ratio
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def ace(
    group_size: PositiveInt = 8, penalty_coef: NonNegative = 1.0, clip_eps: NonNegative = 0.2
) -> Method:
    """A' = A (1 + penalty_coef softplus(c)) for incorrect answers, A' = A for others; A as in GRPO.

    c = log pi_old(y) - log pi_ref(y), in nats and summed over the answer, measures how much
    training has raised the answer's probability.

    Args:
        group_size: rollouts per task (our choice).
        penalty_coef: strength of the penalty (our choice: the paper's value is not known to us).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=chain(Center(), ScaleByStd(), OverconfidencePenalty(penalty_coef)),
        loss=Clip(clip_eps, clip_eps),
    )


def softplus(c: Tensor) -> Tensor:
    """log(1 + e^c): a ReLU that is smooth at 0."""
    return torch.nn.functional.softplus(c)


@component
class OverconfidencePenalty:
    """x (1 + penalty_coef phi(c)) where x < 0, else x, with c = log pi_old(y) - log pi_ref(y).

    Args:
        penalty_coef: strength of the penalty.
        penalty_fn: phi, a function of c in nats.
    """

    penalty_coef: NumberOrSchedule
    penalty_fn: Callable[[Tensor], Tensor] = softplus

    # log-probabilities of the reference, which is the policy before training
    requires = Requires(signals=("logp@ref",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        c = ref_log_ratio(batch).to(x)
        return torch.where(x < 0, x * (1 + self.penalty_coef * self.penalty_fn(c)), x)


PAPER = Paper(
    title="Overconfident Errors Need Stronger Correction: Asymmetric Confidence Penalties for RL",
    use="pass@1 grows and pass@k shrinks: the policy has become confident in some wrong answers.",
    tags=("advantage", "exploration"),
    checked=("golden", "properties", "run"),
    catalogue=("ace-confidence",),
    source=Source(
        "third_party",
        "the abstract (c, the decomposition) and an explainer page of howistudyai.com (softplus, "
        "placing)",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=("ACE on DAPO.",),
    deviations=(
        (
            "Softplus is the phi that the ablation prefers; ReLU is OverconfidencePenalty(alpha, "
            "torch.relu)."
        ),
        "Group, clip, the mean over answers and no KL divergence are our choice: no source that was"
        " opened has them.",
        "c is that of the policy before the update, a constant; the abstract writes the policy"
        " itself, which is the same in the one update of a step.",
    ),
    audit=(
        "c compared with the abstract, softplus and its placing with the explainer page and a "
        "review of arxivlens.com; the value of alpha could not be opened"
    ),
)
