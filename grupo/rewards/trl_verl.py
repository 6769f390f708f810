"""Reward functions written for TRL and for verl, used as they are."""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from grupo.core.component import component
from grupo.core.errors import ConfigError, suggest
from grupo.core.types import Message, Observation, Rollout, Task
from grupo.rewards.base import PerRolloutReward, RewardValue

NON_COLUMN_NAMES = (
    "prompt",
    "prompts",
    "completion",
    "completions",
    "completion_ids",
)  # no columns to TRL


@component
class TRLReward:
    """A reward function of TRL: lists by name, one entry for each rollout.

    `prompts`, `completions`, `completion_ids`, every column of the task, `trainer_state` (None),
    and `log_extra(column, values)` and `log_metric(name, value)`, whose numbers become parts.
    """

    function: Callable[..., Any]

    def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardValue] | Awaitable[Sequence[RewardValue]]:
        logged: dict[str, Sequence[Any]] = {}
        arguments = {
            **{name: [value] * len(rollouts) for name, value in _columns(task).items()},
            "prompts": [_trl_prompt(task.prompt)] * len(rollouts),
            "completions": [_trl_completion(task, rollout) for rollout in rollouts],
            "completion_ids": [_completion_ids(rollout) for rollout in rollouts],
            "trainer_state": None,
            "log_extra": lambda column, values: logged.update({column: list(values)}),
            "log_metric": lambda name, value: logged.update({name: [value] * len(rollouts)}),
        }
        result = self.function(**accepted_arguments(self.function, arguments))
        return (
            _await_and_merge(result, logged)
            if inspect.isawaitable(result)
            else _merge_logged(result, logged)
        )


async def _await_and_merge(
    result: Awaitable[Any], logged: Mapping[str, Sequence[Any]]
) -> Sequence[RewardValue]:
    return _merge_logged(await result, logged)


def _merge_logged(result: Any, logged: Mapping[str, Sequence[Any]]) -> Any:
    """The marks, with what was logged of each; whoever asked checks the marks."""
    if not logged or not isinstance(result, Sequence):
        return result
    fitting = {name: values for name, values in logged.items() if len(values) == len(result)}
    each = ({name: values[i] for name, values in fitting.items()} for i in range(len(result)))
    return [{**more, "score": mark} for mark, more in zip(result, each, strict=True)]


@component
class VerlReward(PerRolloutReward):
    """A reward function of verl for one rollout: `compute_score(data_source, solution_str, …)`."""

    function: Callable[..., Any]

    def score(self, task: Task, rollout: Rollout) -> Any:
        arguments = {
            "data_source": task.source,
            "solution_str": rollout.text,
            "ground_truth": task.reference_answer,
            "extra_info": _extra_info(task),
        }
        result = self.function(**accepted_arguments(self.function, arguments))
        return _await_score(result) if inspect.isawaitable(result) else _score_of(result)


async def _await_score(result: Awaitable[Any]) -> RewardValue:
    return _score_of(await result)


def _score_of(result: Any) -> Any:
    """Some of verl's scorers answer a tuple that begins with the score."""
    return result[0] if isinstance(result, tuple) and result else result


@component
class VerlBatchReward:
    """A reward function of verl's batch manager: the same names in the plural, lists."""

    function: Callable[..., Any]

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> Any:
        arguments = {
            "data_sources": [task.source] * len(rollouts),
            "solution_strs": [rollout.text for rollout in rollouts],
            "ground_truths": [task.reference_answer] * len(rollouts),
            "extra_infos": [_extra_info(task) for _ in rollouts],
        }
        return self.function(**accepted_arguments(self.function, arguments))


def accepted_arguments(
    function: Callable[..., Any], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Those of the arguments that the function's signature takes; one that it lacks is refused."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        taken = dict(arguments)
    else:
        taken = {p.name: arguments[p.name] for p in parameters if p.name in arguments}
    plain = (p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL))
    for p in plain:
        if p.default is p.empty and p.name not in taken:
            raise ConfigError(f"It wants {p.name!r}. {suggest(p.name, arguments)}")
    return taken


def _columns(task: Task) -> dict[str, Any]:
    known = {"answer": task.reference_answer, "source": task.source, **task.columns}
    return {name: value for name, value in known.items() if name not in NON_COLUMN_NAMES}


def _extra_info(task: Task) -> dict[str, Any]:
    return dict(task.columns.get("extra_info") or {})


def _trl_prompt(prompt: Observation) -> str | list[Message]:
    return prompt if isinstance(prompt, str) else list(prompt)


def _trl_completion(task: Task, rollout: Rollout) -> str | list[Message]:
    """Text where the prompt is text, else the messages after the prompt."""
    return rollout.text if isinstance(task.prompt, str) else list(_messages(rollout))


def _messages(rollout: Rollout) -> Iterator[Message]:
    """An answer of several actions is one message."""
    said = ""
    for number, (seen, action) in enumerate(rollout.turns):
        if number and seen:
            yield {"role": "assistant", "content": said}
            yield from [{"role": "user", "content": seen}] if isinstance(seen, str) else seen
            said = ""
        said += action.text
    yield from [{"role": "assistant", "content": said}] if rollout.turns else []


def _completion_ids(rollout: Rollout) -> list[Any]:
    return list(chain.from_iterable(action.items for _, action in rollout.turns))
