"""RGR-GRPO: rubrics as reward, and as guidance of a revision. Bi et al., 2025, arXiv:2511.12344."""

from grupo.algo.losses import Clip, PolicyShaping, SelectByContext
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import AllIncorrect, GroupSampler, RefineBest, Rescue, RescueAttempt
from grupo.rollouts.samplers.merge_rules import best_replaces_worst
from grupo.rollouts.samplers.refinement import FailedItems
from grupo.rollouts.samplers.trained_prompts import plain_prompt


def rgr_grpo(
    group_size: PositiveInt = 8,
    clip_eps: NonNegative = 0.2,
    shaping_constant: NonNegative = 0.1,
    rubric_column: str = "rubric",
    reward_term: str = "rubric",
) -> Method:
    """Where no rollout meets the whole rubric, the best is revised towards the items that it fails.

    The revision, generated with its failed items in the prompt, replaces the worst rollout if it
    scores higher, and is trained under the plain prompt. The reward is the weight of the items met,
    over all weights: `Rubric` or `CheckedRubric`. A = (r - mean(r)) / std(r) over the mixed group.
    loss = -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A), and -f(pi) A for the revision, f(p) =
    p / (p + shaping_constant).

    Args:
        group_size: rollouts per task (our choice).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        shaping_constant: the constant in f (our choice).
        rubric_column: column of the task that holds the rubric.
        reward_term: name of the reward that scores it.
    """
    ask = RefineBest(FailedItems(rubric_column, reward_term))
    attempt = RescueAttempt(ask, best_replaces_worst, plain_prompt, "refinement")
    return Method(
        sampler=Rescue(GroupSampler(group_size), (attempt,), AllIncorrect(MEETS_ALL)),
        loss=SelectByContext(Clip(clip_eps, clip_eps), PolicyShaping(shaping_constant)),
    )


MEETS_ALL = 0.999  # a weighted mean of ones may be rounded


PAPER = Paper(
    title="Reward and Guidance through Rubrics: Promoting Exploration to Improve Multi-Domain "
    "Reasoning",
    use="Each task has a rubric of weighted items, and no rollout meets it all.",
    tags=("hints", "off-policy"),
    checked=("golden", "properties", "run"),
    catalogue=("rgr-grpo",),
    source=Source(
        "third_party",
        "summaries at sciencestack.ai and emergentmind.com for the three steps; no equation seen",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=("The split of items into facts and steps, which have the same weight rule.",),
    deviations=(
        "One revision per group, in place of the worst rollout if it is better: our reading.",
        "The shaping f(p) = p / (p + 0.1) is that of LUFFY; no source states the paper's.",
        "The clip of 0.2, the mean over answers and the absence of a KL divergence are our choice.",
    ),
    audit="the three steps compared with the summaries, the formulas with the catalogue's row",
    shown=(
        "tests/methods/test_rgr_grpo.py::test_rubric_of_weights_3_1_1_without_the_first_item",
        "tests/methods/test_rgr_grpo.py::test_best_rollout_is_revised_towards_its_failed_items",
        "docs/guidance_shown/hard_sums.md#a-rubric-as-the-reward",
    ),
)
