"""GRPO-lambda: length penalty in the best-solved groups. Dai et al., 2025, arXiv:2505.18086."""

from math import ceil

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import Fraction, NonNegative, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def grpo_lambda_length_reward(
    group_size: PositiveInt = 8, top_group_fraction: Fraction = 0.2, length_coef: NonNegative = 0.2
) -> Method:
    """GRPO with a length reward in the best-solved groups, reward 1 or 0 in all others.

    Args:
        group_size: rollouts per task (our choice).
        top_group_fraction: fraction of groups with the length reward (third party: 0.2).
        length_coef: largest length penalty (our choice).
    """
    advantage = chain(
        LengthRewardWhereSolved(top_group_fraction, length_coef), Center(), ScaleByStd()
    )
    return Method(sampler=GroupSampler(group_size), advantage=advantage)


@component
class LengthRewardWhereSolved:
    """r = 1 - length_coef sigmoid(z) for correct answers in the best-solved groups, else 1 or 0.

    z = (L - mean) / std over the lengths of the correct rollouts of the group.

    Args:
        top_group_fraction: fraction of groups, by accuracy, with the length penalty.
        length_coef: largest penalty.
        reward_term: reward term that is above 1/2 for a correct answer.
    """

    top_group_fraction: Fraction
    length_coef: NumberOrSchedule
    reward_term: str = "correct"

    @property
    def requires(self) -> Requires:
        # groups are ranked by their accuracy
        return Requires(whole_batch=True, reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        right = batch.reward_terms[self.reward_term] > 0.5
        L = batch.lengths
        g = batch.group
        deviation = L - group_ops.mean_where(right, L, g)
        z = deviation / group_ops.mean_where(right, deviation**2, g).sqrt().clamp(min=1e-4)
        return right * (
            1 - self.length_coef * torch.sigmoid(z) * self._is_top_group(right.to(L), g)
        )

    def _is_top_group(self, correct: Tensor, group: Tensor) -> Tensor:
        """True for rollouts of the best-solved groups; equal accuracies are treated alike."""
        accuracy = group_ops.mean(correct, group)
        count = group_ops.count(correct, group)
        better = ((accuracy[None] > accuracy[:, None]) / count[None]).sum(1).round()  # groups
        return better < ceil(self.top_group_fraction * len(group.unique()) - 1e-9)


PAPER = Paper(
    title="Stable Reinforcement Learning for Efficient Reasoning",
    use="A length penalty shortens answers, and then accuracy collapses.",
    tags=("length", "reward"),
    checked=("golden", "properties", "run"),
    catalogue=("grpo-lambda-length",),
    source=Source(
        "third_party",
        "jianzhnie/llmtech: docs/rlhf/paper/GRPO-lambda.md, a page on the paper with code",
    ),
    plan="not stated in any source that was opened; one update per step",
    deviations=(
        (
            "length_coef is our choice, 0.2: the third party's code has 0.6, and the paper's "
            "value was not available."
        ),
        (
            "Wrong answers of the best-solved groups get 0, as in the formula and in the page's "
            "code; the code of an older page (GRPO-λ.md) pays the length reward to them, too."
        ),
        "Groups that are solved as well as the last of the best-solved ones are among them: the "
        "page's code takes exactly ceil(fraction x groups).",
        "group_size is our choice, 8; so are the clip of 0.2, the mean over answers and no KL"
        " divergence.",
    ),
    audit=(
        "formula, fraction, rounding and standard deviation compared with the page; the paper "
        "could not be opened"
    ),
    shown=("docs/claims.md#padded",),
)
