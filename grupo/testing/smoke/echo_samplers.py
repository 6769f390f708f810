"""Samplers at the scale of Echo, whose answers have a few tokens of six letters and digits."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from grupo.core.component import component_fields, is_component, walk
from grupo.core.types import Observation, Task
from grupo.rollouts.samplers import (
    AnytimeBudgets,
    ChosenStart,
    DistilledDrafts,
    EarlyPruning,
    FirstErrorSearch,
    ForcedRethinking,
    GroupPart,
    GroupSampler,
    LeveledHint,
    RandomTrigger,
    RefineBest,
    Rescue,
    RevisionPrompt,
    SelfHints,
    SplitGroup,
    SummaryOfDrafts,
    TeacherFeedback,
    WindowSampler,
    WithReflection,
)
from grupo.rollouts.samplers.cut_points import AtFractions
from grupo.testing.smoke.echo_env import MAX_NEW_TOKENS

GROUP_SIZE = 8
TEXTS = ("", "a", "b", "ab")  # of the parts of a split group; the first answers as it likes


def fit_to_echo(sampler: Any) -> Any:
    """The same sampler with groups, lengths and texts that fit Echo, at any depth.

    Groups have `GROUP_SIZE` rollouts, or the largest number below that splits into equal parts.
    """
    if isinstance(sampler, tuple):
        return tuple(map(fit_to_echo, sampler))
    if not is_component(sampler):
        return sampler
    fields = component_fields(sampler)
    inner = {name: fit_to_echo(x) for name, x in fields.items()}
    changes = SCALED.get(type(sampler), _no_changes)(sampler)
    return replace(sampler, **{**inner, **changes})


def _no_changes(sampler: object) -> Mapping[str, Any]:
    return {}


def _split(sampler: SplitGroup) -> Mapping[str, Any]:
    count = len(sampler.parts)
    parts = (
        GroupPart(c.value, text * bool(c.prefix), text * bool(c.prompt_suffix))
        for c, text in zip(sampler.parts, TEXTS, strict=False)
    )
    return {"group_size": GROUP_SIZE - GROUP_SIZE % count, "parts": tuple(parts)}


def _prompt_again(task: Task, other: object) -> Observation:
    """The prompt for a hint."""
    return task.prompt


SCALED: Mapping[type, Callable[[Any], Mapping[str, Any]]] = {
    ChosenStart: lambda sampler: {"group_size": GROUP_SIZE, "starts": (("a", 0.5), ("b", 0.5))},
    DistilledDrafts: lambda sampler: {"group_size": GROUP_SIZE, "request": "={workspace}"},
    SummaryOfDrafts: lambda distill: {"request": "={drafts}", "separator": ""},
    TeacherFeedback: lambda sampler: {"group_size": GROUP_SIZE, "request": "={answer}"},
    GroupSampler: lambda sampler: {"group_size": GROUP_SIZE},
    SplitGroup: _split,
    WindowSampler: lambda sampler: {
        "group_size": GROUP_SIZE,
        "window": 2,
        "max_length": MAX_NEW_TOKENS,
    },
    AnytimeBudgets: lambda sampler: {
        "traces": 2,
        "token_budgets": tuple(range(1, len(sampler.token_budgets) + 1)),
        "answer_tokens": MAX_NEW_TOKENS,
        "cutoff_text": "",
        "think_end": "=",
        "answer_header": "=",
    },
    EarlyPruning: lambda sampler: {"prune_at": 1, "max_new_tokens_after": MAX_NEW_TOKENS},
    FirstErrorSearch: lambda sampler: {"at": AtFractions()},
    ForcedRethinking: lambda sampler: {"min_tokens": 1, "marker": "b"},
    RandomTrigger: lambda trigger: {"texts": (("b", 1.0),), "if_correct": "", "if_wrong": ""},
    RevisionPrompt: lambda prompt: {"instruction": "="},
    WithReflection: lambda sampler: {
        "failure_threshold": 0.9,
        "prefix_text": "=",
        "retry_instruction": "=",
    },
    Rescue: lambda sampler: (
        {"inner": GroupSampler(4)}  # of a larger group, all are rarely incorrect
        if any(isinstance(part, SelfHints) for part in walk(sampler))
        else {}
    ),
    LeveledHint: lambda ask: {
        "hint_prompt": _prompt_again,
        "extract_hint": str.strip,
        "prefix_text": "",
    },
    RefineBest: lambda ask: {"instruction": "{items}"},
    SelfHints: lambda ask: {
        "hint_prompt": _prompt_again,
        "extract_hint": str.strip,
        "prefix_text": "",
    },
}
