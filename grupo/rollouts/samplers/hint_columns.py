"""Hints from a column of the task, for groups in which all rollouts are incorrect."""

from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.numbers import NonNegative, NumberOrSchedule
from grupo.core.ranges import PositiveProbability
from grupo.core.requires import Requires
from grupo.core.types import Group, Task
from grupo.rollouts.samplers.base import Sampler
from grupo.rollouts.samplers.hints import append_to_prompt, beginning, check_no_leak
from grupo.rollouts.samplers.merge_rules import FirstCorrectReplacesFirst, add_all
from grupo.rollouts.samplers.rescue import (
    AllIncorrect,
    GenerationPrompt,
    Rescue,
    RescueAttempt,
    RescuePrompts,
)
from grupo.rollouts.samplers.trained_prompts import (
    TrainingPrompt,
    keep_generation_prompt,
    plain_prompt,
)

PREFIX_TEXT = "\n\nHint: "


@component
class HintColumn:
    """Builds one prompt that ends with the hint of a column.

    As many rollouts answer this prompt as the group has. A task without the column gets no prompt.

    Args:
        column: Column of the hint.
        prefix_text: Text between the prompt and the hint.
        reject_leaks: Whether a hint that contains the reference answer raises `ConfigError`.
        fraction: The hint is the beginning of the column's text: this fraction of its characters.
    """

    column: str = "hint"
    prefix_text: str = PREFIX_TEXT
    reject_leaks: bool = False
    fraction: PositiveProbability = 1.0

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.column,))

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for hints that contain the answer, if `reject_leaks`."""
        if self.reject_leaks:
            for task in tasks:
                check_no_leak(task, self.column, self.fraction)

    async def __call__(self, group: Group, env: Env, actor: Actor) -> RescuePrompts:
        task = group.task
        self.validate_tasks([task])
        if self.column not in task.columns:
            return RescuePrompts()
        hint = beginning(str(task.columns[self.column]), self.fraction)
        hinted_task = append_to_prompt(task, self.prefix_text + hint)
        # the number of labels is the number of rollouts
        rng_labels = tuple(("guided", i) for i in range(len(group.rollouts)))
        return RescuePrompts((GenerationPrompt(hinted_task, rng_labels=rng_labels),))


@component
class HintLevels:
    """Builds a prompt for each hint of a column, from weak to strong, with one rollout each.

    The column has a list of tiers, the weakest first. A tier is a text, or a list of texts that
    continue one another. A tier with the texts a, b and c makes three levels, with the hints a,
    a + b and a + b + c.

    Args:
        max_levels: Only the first `max_levels` levels are tried; may be a schedule. A warm-up
            without hints is `Switch(0.15, 0.0, 12.0)`: no level in the first 15 % of the run, and
            then 12 levels.
        column: Column of the hints.
        prefix_text: Text between the prompt and the hint.
    """

    max_levels: NonNegative = 12.0
    column: str = "hints"
    prefix_text: str = PREFIX_TEXT

    @property
    def requires(self) -> Requires:
        return Requires(columns=(self.column,))

    async def __call__(self, group: Group, env: Env, actor: Actor) -> RescuePrompts:
        levels = hint_levels(group.task.columns, self.column)[: int(self.max_levels)]
        return RescuePrompts(
            tuple(
                GenerationPrompt(
                    append_to_prompt(group.task, self.prefix_text + hint),
                    rng_labels=(("level", i),),  # one label: one rollout
                )
                for i, hint in enumerate(levels)
            )
        )


def hint_levels(columns: Mapping[str, Any], column: str) -> Sequence[str]:
    """The hint of each level, as in `HintLevels`; the texts of a hint are joined by line breaks.

    >>> hint_levels({"hints": ["add", ["1 + 1", "1 + 1 = 2"]]}, "hints")
    ['add', '1 + 1', '1 + 1\\n1 + 1 = 2']
    """
    tiers = columns.get(column, ())
    texts = [[tier] if isinstance(tier, str) else list(tier) for tier in tiers]
    return ["\n".join(tier[: i + 1]) for tier in texts for i in range(len(tier))]


def with_hint(
    inner: Sampler,
    column: str = "hint",
    prefix_text: str = PREFIX_TEXT,
    success_threshold: NumberOrSchedule = 0.5,
    *,
    reject_leaks: bool = False,
) -> Rescue:
    """Adds to an all-incorrect group as many rollouts with a hint as it has.

    The added rollouts have the source "with_hint" and are trained with the task's own prompt, so
    that their ratio is pi(o | q) / old(o | q, hint). Guide-GRPO, Nath et al. (arXiv:2506.13923).

    Args:
        inner: The sampler of the rollouts without a hint.
        column: Column of the hint.
        prefix_text: Text between the prompt and the hint.
        success_threshold: A rollout with a higher reward is correct.
        reject_leaks: Whether a hint that contains the reference answer raises `ConfigError`.
    """
    build_prompts = HintColumn(column, prefix_text, reject_leaks)
    attempt = RescueAttempt(build_prompts, add_all, plain_prompt, "with_hint")
    return Rescue(inner, (attempt,), AllIncorrect(success_threshold))


def with_scaffold(
    inner: Sampler,
    max_levels: NonNegative = 12.0,
    column: str = "hints",
    prefix_text: str = PREFIX_TEXT,
    success_threshold: NumberOrSchedule = 0.5,
    training_prompt: TrainingPrompt = keep_generation_prompt,
) -> Rescue:
    """Replaces one rollout of an all-incorrect group by a correct rollout with a hint.

    Each level of `HintLevels` is tried with one rollout. The correct rollout with the weakest hint
    replaces the group's first rollout, and its source is "with_scaffold". Scaf-GRPO, Zhang et al.
    (arXiv:2510.19807).

    Args:
        inner: The sampler of the rollouts without a hint.
        max_levels: Only the first `max_levels` levels are tried; may be a schedule.
        column: Column of the hints.
        prefix_text: Text between the prompt and the hint.
        success_threshold: A rollout with a higher reward is correct.
        training_prompt: The prompt that the correct rollout is trained with: by default the prompt
            with the hint; `plain_prompt` is the task's own prompt.
    """
    build_prompts = HintLevels(max_levels, column, prefix_text)
    merge = FirstCorrectReplacesFirst(success_threshold)
    attempt = RescueAttempt(build_prompts, merge, training_prompt, "with_scaffold")
    return Rescue(inner, (attempt,), AllIncorrect(success_threshold))
