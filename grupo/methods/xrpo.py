"""XRPO: unlikely correct answers count more. Bamba et al., 2025, arXiv:2510.06672."""

import torch
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.intrinsic import MeanSignal
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, NonNegativeInt, NumberOrSchedule, Positive, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.curricula import Curriculum, ShuffledTasks, UncertaintyAllocation
from grupo.rollouts.samplers import GroupSampler, Rescue, RescueAttempt, Sampler, SolvedExamples


def xrpo(
    group_size: PositiveInt = 8,
    novelty_coef: NonNegative = 2.5,
    max_bonus_fraction: Positive = 0.5,
    phases: NonNegativeInt = 0,
    examples: NonNegativeInt = 0,
) -> Method:
    """GRPO whose positive advantages grow where s, the mean log-probability, is low.

    With `phases`, half of the rollouts of a step go to the tasks whose mean reward they make most
    certain. With `examples`, a task without a correct rollout is attempted again behind similar
    tasks that the policy has solved.

    Args:
        group_size: rollouts per task, on average (our choice).
        novelty_coef: lambda_novelty of the paper, as a public review quotes it.
        max_bonus_fraction: kappa_clip of the paper, as a public review quotes it.
        phases: phases in which groups grow; 0 gives all groups one size.
        examples: worked examples in the prompts of unsolved tasks; 0 leaves these as they are.
    """
    curriculum: Curriculum = ShuffledTasks()
    if phases:
        first = max(2, group_size // 2)
        curriculum = UncertaintyAllocation(curriculum, first, group_size, phases)
    sampler: Sampler = GroupSampler(group_size)
    if examples:
        sampler = Rescue(
            sampler, (RescueAttempt(SolvedExamples(examples), source="with_examples"),)
        )
    return Method(
        curriculum=curriculum,
        sampler=sampler,
        advantage=chain(Center(), ScaleByStd(), NoveltyBonus(novelty_coef, max_bonus_fraction)),
    )


@component
class NoveltyBonus:
    """A + min(max(novelty_coef (1 - exp(s - mean s)), 0), max_bonus_fraction A) where A > 0.

    s is the mean log-probability of a rollout's tokens when sampled, compared within the group.

    Args:
        novelty_coef: weight of the novelty.
        max_bonus_fraction: largest bonus, as a fraction of A.
    """

    novelty_coef: NumberOrSchedule
    max_bonus_fraction: NonNegative

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        s = MeanSignal()(x, batch)
        novelty = (s - group_ops.mean(s, batch.group)).exp()
        bonus = (self.novelty_coef * (1 - novelty)).clamp(min=0)
        return x + torch.min(bonus, self.max_bonus_fraction * x.clamp(min=0))


PAPER = Paper(
    title="XRPO: Pushing the limits of GRPO with Targeted Exploration and Exploitation",
    use="The policy has a favourite way to the correct answer and learns no other.",
    tags=("exploration", "advantage"),
    checked=("golden", "properties", "run"),
    catalogue=("xrpo",),
    source=Source(
        "third_party",
        (
            "Wodlfvllf/grpo-composer, grpo_composer/core/advantages/novelty_sharpening.py; a "
            "public review for the constants; the authors' UIUC-MLSys/XRPO could not be opened"
        ),
    ),
    plan="not stated in any source that was opened; one update per step",
    deviations=(
        "By default only the novelty bonus is on, which the claim is about.",
        "Weight and bound of the bonus are the review's; that code has 1 for both.",
        (
            "There is no KL divergence here; that code's configs/papers/xrpo.yaml adds one of "
            "weight 0.01. Rows count equally in both."
        ),
        "Sizes of groups, phases, confidence, and the weight of the exploration bonus are our"
        " choice; so are two worked examples, which are retrieved by BM25.",
        "Answers behind worked examples are trained on behind them.",
        (
            "Only rollouts with A > 0 have a bonus, as the paper's formula is for correct ones; "
            "that code adds it to all."
        ),
    ),
    audit="formula compared with novelty_sharpening.py by other people",
    shown=(
        "docs/claims.md#modes",
        "tests/rollouts/curricula/test_uncertainty.py::test_a_step_has_its_budget_where_rewards_vary",
        "tests/methods/test_xrpo.py::test_unsolved_tasks_are_asked_behind_worked_examples",
        "docs/guidance_shown/task_choice.md#results",
    ),
)
