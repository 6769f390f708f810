"""Online difficulty filtering: tasks half solved. Bae et al., 2025, arXiv:2504.03380."""

from grupo.algo.filters import KeepAccuracy
from grupo.algo.losses import KL, Clip
from grupo.core.numbers import Fraction, NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler


def online_difficulty_filtering(
    low: Fraction = 0.25,
    high: Fraction = 0.75,
    group_size: PositiveInt = 16,
    max_resample_rounds: PositiveInt = 10,
    kl_coef: NonNegative = 0.001,
) -> Method:
    """GRPO on the tasks of which a fraction p of rollouts is correct with low <= p <= high.

    Further tasks are drawn until a step has all its groups. The improvement of the policy is at
    least in proportion to p (1 - p), which is largest at p = 1/2.

    Args:
        low: smallest fraction (our choice; balanced filtering has low = 1 - high).
        high: largest fraction (our choice).
        group_size: rollouts per task (our choice).
        max_resample_rounds: rounds of generation per step (our choice).
        kl_coef: weight of the KL divergence from the reference policy (our choice).
    """
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), max_resample_rounds),
        sampler=GroupSampler(group_size),
        filter=KeepAccuracy(low, high),
        loss=Clip() + kl_coef * KL(),
    )


PAPER = Paper(
    title="Online Difficulty Filtering for Reasoning Oriented Reinforcement Learning",
    use="Tasks are of very different difficulty, and rollouts cost less than updates.",
    tags=("filtering", "curriculum"),
    verl="filter_groups drops accuracies of 0 and 1 only; EasyR1 has filter_low and filter_high",
    checked=("golden", "properties", "run"),
    catalogue=("online-difficulty-filtering",),
    source=Source("abstract", "arXiv 2504.03380 v1 and v2, abstract and public summaries"),
    plan=(
        "not stated in any source that was opened; one update per step, in which the clip does "
        "not act"
    ),
    missing=("Groups that are judged one by one while others are still generated.",),
    deviations=(
        "Thresholds, group size and the weight of the KL divergence are our choice.",
        "A round draws as many tasks as groups are missing, so that no group is left over to be"
        " stacked for the next step.",
        "After the last round, the groups closest to the interval complete the step: our choice.",
    ),
    audit="filter and the bound by p (1 - p) compared with both abstracts and the catalogue's row",
    shown=(
        "tests/methods/test_online_difficulty_filtering.py::test_a_step_has_exactly_n_groups",
        "docs/guidance_shown/task_choice.md#results",
    ),
)
