"""GHPO: failed groups see more and more of a solution. Liu et al., 2025, arXiv:2507.10628."""

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.ranges import PositiveProbability
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, HintColumn, Rescue, RescueAttempt
from grupo.rollouts.samplers.merge_rules import replace_all


def ghpo(
    group_size: PositiveInt = 8,
    fractions: tuple[PositiveProbability, ...] = (0.25, 0.5, 0.75),
    clip_eps: NonNegative = 0.2,
    hint_column: str = "solution",
) -> Method:
    """GRPO in which a group without a success is redone with a hint, and again with a longer one.

    The hint is the beginning of the task's solution, of these fractions of its characters one after
    another, until one rollout is correct; the last group is kept. Its rollouts are trained under
    the prompt with the hint, whose tokens have no loss. A = (r - mean(r)) / (std(r) + 1e-4); loss =
    token mean of -min(R A, clip(R, 1 - clip_eps, 1 + clip_eps) A).

    Args:
        group_size: rollouts per task (authors' configuration: 8).
        fractions: fractions of the solution that are shown (authors' code: 0.25, 0.5, 0.75).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps] (authors' code: 0.2).
        hint_column: column of the task that holds the solution.
    """
    attempts = tuple(
        RescueAttempt(
            HintColumn(hint_column, LEAD_IN, fraction=part), replace_all, source="with_hint"
        )
        for part in fractions
    )
    return Method(
        sampler=Rescue(GroupSampler(group_size), attempts),
        advantage=chain(Center(), ScaleByStd(eps=1e-4)),
        loss=Clip(clip_eps, clip_eps),
        aggregation=token_mean,
    )


LEAD_IN = "\n\nThe beginning of the answer, which may be used to solve the problem:\n"


PAPER = Paper(
    title="GHPO: Adaptive Guidance for Stable and Efficient LLM Reinforcement Learning",
    use="Many tasks are never solved, and each has a worked solution.",
    tags=("hints",),
    checked=("golden", "properties", "run"),
    catalogue=("ghpo",),
    source=Source(
        "code",
        "hkgc-1/GHPO: src/ghpo/ghpo_trainer.py, recipes/Qwen2.5-Math-7B/ghpo/config_ghpo.yaml",
    ),
    plan="config_ghpo.yaml: num_iterations is left at 1, one update per step",
    missing=(
        "The cold start with a fixed hint in the first steps, which the released trainer lacks.",
        "Plain GRPO before start_hint_step (0 in the configuration).",
    ),
    deviations=(
        "A group that a hint has solved keeps the hinted prompt. The trainer goes back to the plain"
        " one where another question of the same device is redone with a longer hint.",
        "The mean over tokens is over the step, the trainer's (`bnpo`) over a micro-batch of 8"
        " answers, one question.",
        "The text before the hint is ours.",
        "A rollout is correct if its reward is above 0.5, in the trainer if its accuracy is above"
        " 0: its format, of weight 0.5, does not count.",
    ),
    audit=(
        "fractions, cut by characters, whole groups redone under the hinted prompt, clip, "
        "standard deviation + 1e-4 and group size compared with the trainer and its configuration"
    ),
    shown=(
        "docs/guidance_shown/hard_sums.md#results",
        "tests/methods/test_ghpo.py"
        "::test_groups_are_redone_until_half_of_the_solution_suffices_and_no_further",
    ),
)
