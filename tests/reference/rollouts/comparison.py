"""The comparison of a method's sampler with its reference, for one script."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from grupo.core.interfaces import Env
from grupo.core.schedules import resolve_schedules
from grupo.core.types import Group, Task
from grupo.method import Method
from tests.reference.rollouts.scripted import Model, RuleEnv, ScriptedActor, rows_of
from tests.reference.rollouts_plain.record import (
    REFERENCES,
    Answers,
    Policy,
    Question,
    Trained,
)

Settings = Mapping[str, Any]
COUNTED = ("value", "belief")  # terms of which a reference states all


@dataclass(frozen=True)
class Script:
    """A policy, a task and a rule, for which a method's sampler is compared with its reference.

    Args:
        name: What happens, in a few words.
        method: The method, small.
        question: The task.
        answers: The policy's texts, from the context and the number of earlier calls with it.
        reward: The reward of a text behind the prompt.
        settings: Arguments of the reference: wording and sizes.
        read: Further arguments, from the sampler's calls and rows: what was drawn.
        reply: The environment's observation behind a response; None ends the rollout.
        terms: Further reward terms of the environment.
        model: Probabilities, entropies and the greedy answer of the policy.
        task: Further fields of the task.
        progress: Share of the training that is done.
        through_filter: The method's filter is a part of the comparison.
        calls_in_order: The order of the calls is compared; else only which calls there are.
        is_compared: Whether a call with this context is compared.
        rows_in_order: The order of the rollouts is compared.
        key: Key of the random stream.
        limit: Most letters of an answer.
        metrics: Values of the metrics that controllers read, by step.
        env: Makes the environment, if it is not one of a rule.
    """

    name: str
    method: Method
    question: Question
    answers: Answers
    reward: Callable[[str], float]
    settings: Settings = field(default_factory=dict)
    read: Callable[[Sequence[str], Sequence[Trained]], Settings] = lambda calls, rows: {}
    reply: Callable[[str], str | None] = lambda text: None
    terms: Callable[[str], dict[str, float]] = lambda text: {}
    model: Model = field(default_factory=Model)
    task: Settings = field(default_factory=dict)
    progress: float = 0.5
    through_filter: bool = False
    calls_in_order: bool = True
    is_compared: Callable[[str], bool] = lambda context: True
    rows_in_order: bool = True
    key: int = 0
    limit: int = 10_000
    metrics: Mapping[str, Sequence[float]] = field(default_factory=dict)
    env: Callable[[], Env] | None = None


def sampled_group(script: Script, policy: Policy) -> Group:
    """The group of the method's own sampler."""
    q = script.question
    task = Task("t", q.prompt, q.answer or None, columns=q.columns, **script.task)
    env = script.env() if script.env else RuleEnv(script.reward, script.reply, script.terms)
    actor = ScriptedActor(policy, script.model, script.key)
    method = resolve_schedules(script.method, script.progress, script.metrics)
    group = asyncio.run(method.sampler(task, env, actor))
    if not script.through_filter:
        return group
    kept = method.filter([group])
    return kept[0] if kept else Group(task, ())


def assert_equals_reference(name: str, script: Script) -> None:
    """Fail at the first rollout or call in which the sampler differs from the reference."""
    policy = Policy(script.answers, script.limit)
    rows = rows_of(sampled_group(script, policy))
    expected_policy = Policy(script.answers, script.limit)
    arguments = {**script.settings, **script.read(policy.calls, rows)}
    expected = REFERENCES[name].run(script.question, expected_policy, script.reward, **arguments)
    if not script.rows_in_order:
        rows, expected = sorted(rows, key=_shown), sorted(expected, key=_shown)
    assert [_shown(row) for row in rows] == [_shown(row) for row in expected]
    for row, reference in zip(rows, expected, strict=True):
        _assert_numbers(row, reference)
    calls, expected_calls = (
        [call for call in calls if script.is_compared(call)]
        for calls in (policy.calls, expected_policy.calls)
    )
    if not script.calls_in_order:
        calls, expected_calls = sorted(calls), sorted(expected_calls)
    assert calls == expected_calls


def _shown(row: Trained) -> tuple[Any, ...]:
    return (row.prompt, *((p.text, p.trained, p.sampled, p.moved) for p in row.parts))


def _assert_numbers(row: Trained, reference: Trained) -> None:
    if reference.reward is not None:
        assert row.reward == pytest.approx(reference.reward, abs=1e-12)
    if reference.source:
        assert row.source == reference.source
    found = {name: row.terms.get(name) for name in reference.terms}
    assert found == pytest.approx(dict(reference.terms), abs=1e-12)
    counted = [name for name in row.terms if name.startswith(COUNTED)]
    assert sorted(counted) == sorted(n for n in reference.terms if n.startswith(COUNTED))
