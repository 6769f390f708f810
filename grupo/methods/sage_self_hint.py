"""SAGE: own hints of rising detail where all rollouts fail. Liao et al., 2026, arXiv:2602.03143."""

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, LeveledHint, Rescue, RescueAttempt
from grupo.rollouts.samplers.leveled_hints import LEVELS, LeveledHintPrompt
from grupo.rollouts.samplers.merge_rules import replace_all


def sage_self_hint(
    group_size: PositiveInt = 8,
    clip_low: NonNegative = 0.2,
    clip_high: NonNegative = 0.28,
    solution_column: str = "solution",
) -> Method:
    """GRPO in which a group without a success is redone with a hint that the policy writes itself.

    Hints have three levels: the idea, the method, the way in detail. They are tried in order until
    a rollout is correct; the last group is kept and trained under the prompt with its hint, and the
    hints are not trained on. A = (r - mean(r)) / std(r); loss = token mean of -min(R A, clip(R, 1 -
    clip_low, 1 + clip_high) A).

    A step has 2 updates, each on a minibatch of its groups.

    Args:
        group_size: rollouts per task (authors' script: 8).
        clip_low: ratios are at least 1 - clip_low (authors' script: 0.2).
        clip_high: ratios are at most 1 + clip_high (authors' script: 0.28).
        solution_column: column of the task that holds the solution.
    """
    prompt = LeveledHintPrompt(column=solution_column)
    attempts = tuple(
        RescueAttempt(LeveledHint(level, prompt), replace_all, source="with_self_hint")
        for level in range(1, len(LEVELS) + 1)
    )
    return Method(
        sampler=Rescue(GroupSampler(group_size), attempts),
        loss=Clip(clip_low, clip_high),
        aggregation=token_mean,
        updates=Updates(minibatches=2),
    )


PAPER = Paper(
    title="Self-Hinting Language Models Enhance Reinforcement Learning",
    use="Many tasks are never solved; each has a reference solution but no hint.",
    tags=("hints", "self-play"),
    checked=("golden", "properties", "run"),
    catalogue=("sage-self-hint",),
    source=Source(
        "code",
        "BaohaoLiao/SAGE: recipe/hint/hint_trainer.py, prompt.py, config/hint_trainer.yaml, "
        "scripts/run_sage.sh",
    ),
    plan="run_sage.sh: 128 prompts per step in minibatches of 64, 2 updates",
    missing=(
        "Repeated requests for hints that cannot be parsed, and the last stored hint instead.",
        "The dual clip of 3 of the release.",
    ),
    deviations=(
        "Each level is asked for when it is needed, in a call of its own; the code asks once for "
        "all three.",
        "A hint that contains the reference answer is rejected; the code only asks for none.",
        "A rollout is correct above a reward of 0.5, the code's above 0.",
        "The variant without a second group, SAGE-light, is the sampler AtHintLevel.",
        "The mean is over the tokens of a minibatch, in the release over those of a micro-batch of"
        " 4 answers.",
    ),
    audit=(
        "condition, order of levels, replaced groups under the hinted prompt, thresholds of the "
        "light variant, clips, group size and plan compared with the trainer and run_sage.sh"
    ),
    shown=(
        "docs/guidance_shown/rescue_sums.md#results",
        "tests/methods/test_sage_self_hint.py::test_level_rises_after_failures_and_falls_after_successes",
        "tests/methods/test_sage_self_hint.py::test_levels_are_tried_until_one_rollout_is_correct",
        "tests/methods/test_sage_self_hint.py::test_hint_that_holds_the_answer_is_rejected",
    ),
)
