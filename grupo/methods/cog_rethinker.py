"""Cog-Rethinker: failed groups decompose, then correct. Sun et al., 2025, arXiv:2510.15979."""

from collections.abc import Sequence

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.data_source import PerSourceMean, SeparateDemos
from grupo.algo.losses import NLL, Clip, SelectBySource
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.samplers import (
    GroupSampler,
    Rescue,
    RescueAttempt,
    SolvedExamples,
    WithRecitedRescues,
)
from grupo.rollouts.samplers.merge_rules import replace_all
from grupo.rollouts.samplers.recited_rescues import RECITED


def cog_rethinker(
    group_size: PositiveInt = 8,
    num_demonstrations: PositiveInt = 2,
    sft_coef: NonNegative = 0.1,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
) -> Method:
    """A group without a success is redone with a prompt to decompose, then with one to correct.

    Both prompts show num_demonstrations similar tasks that the policy has solved, retrieved by
    BM25, the second one a wrong answer of the group as well. loss = token mean of -min(R A, clip(R,
    1 - clip_low, 1 + clip_high) A) under the prompt of each group, A = (r - mean(r)) / std(r), +
    sft_coef x token mean of -log pi(answer | plain prompt) for correct answers of the two stages.

    Args:
        group_size: rollouts per task and stage (our choice).
        num_demonstrations: solved tasks in the prompts of the stages (our choice).
        sft_coef: weight of the imitation behind the plain prompt (our choice).
        clip_low: ratios are at least 1 - clip_low (DAPO: 0.2).
        clip_high: ratios are at most 1 + clip_high (DAPO: 0.28).
    """
    stages = ((DECOMPOSED, DECOMPOSE), (CORRECTED, CORRECT))
    attempts = tuple(
        RescueAttempt(
            SolvedExamples(num_demonstrations, instruction=text), replace_all, source=source
        )
        for source, text in stages
    )
    rescue = Rescue(GroupSampler(group_size), attempts)
    return Method(
        sampler=WithRecitedRescues(rescue, (DECOMPOSED, CORRECTED)),
        filter=keep_mixed_and_recited,
        advantage=SeparateDemos(chain(Center(), ScaleByStd())),
        loss=SelectBySource(Clip(clip_low, clip_high), sft_coef * NLL()),
        aggregation=PerSourceMean(token_mean),
    )


DECOMPOSED, CORRECTED = "decomposed", "corrected"  # sources of the rollouts of the two stages


DECOMPOSE = "\n\nSplit the problem into parts, solve each of them, then give the final answer."


CORRECT = "\n\nAn answer that is wrong: {attempt}\n\nFind the mistake, and answer again."


def keep_mixed_and_recited(groups: Sequence[Group]) -> Sequence[Group]:
    """Keep the groups whose rewards differ, and those with recited rollouts."""
    return [
        group
        for group in groups
        if group.has_reward_variance or any(r.source == RECITED for r in group.rollouts)
    ]


PAPER = Paper(
    title="Cog-Rethinker: Hierarchical Metacognitive Reinforcement Learning for LLM Reasoning",
    use="Many groups are all wrong, and the policy solves more with another prompt.",
    tags=("hints", "sft"),
    checked=("golden", "properties", "run"),
    catalogue=("cog-rethinker",),
    source=Source("abstract", "arXiv:2510.15979, abstract; the catalogue's row; no equation seen"),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        "DAPO's refilling, .replace(curriculum=DynamicSampling(...)), and its length penalty.",
    ),
    deviations=(
        "Both stages show solved tasks of one buffer, not decompositions and corrections.",
        "The texts of the prompts, the number of demonstrations and sft_coef are our choice.",
        "Groups without different rewards are kept for the imitation of their copies alone.",
    ),
    audit="stages, their condition and the imitation compared with the abstract and the row",
    shown=(
        "docs/guidance_shown/rescue_sums.md#results",
        "tests/methods/test_cog_rethinker.py::test_only_the_unsolved_prompt_is_asked_again",
        "tests/rollouts/test_demonstration_buffer.py"
        "::test_most_similar_solved_tasks_are_shown_and_never_the_task_itself",
    ),
)
