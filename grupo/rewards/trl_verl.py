"""Reward functions written for TRL and verl, called with the arguments that they expect."""

import inspect
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from grupo.core.component import component
from grupo.core.media import Image
from grupo.core.pictures import open_picture
from grupo.core.types import Message, Observation, Rollout, Task, prefill_text, turn_text
from grupo.rewards.base import PerRolloutReward, RewardValue
from grupo.util.errors import ConfigError, suggest

# TRL passes these as arguments of their own, so a column of the same name is left out
NON_COLUMN_NAMES = (
    "prompt",
    "prompts",
    "completion",
    "completions",
    "completion_ids",
)
# arguments of every call, besides the columns
TRL_ARGUMENTS = (
    *("prompts", "completions", "completion_ids"),
    *("trainer_state", "log_extra", "log_metric"),
)

MESSAGES_HINT = (
    "The prompts are messages, so that each completion is a list of messages: its text is"
    " completion[-1]['content']."
)


@component
class TRLReward:
    """A reward function of TRL, which gets lists with one entry per rollout as keyword arguments.

    The arguments are `prompts`, `completions`, `completion_ids`, every column of the task,
    `trainer_state` (None), `log_extra(column, values)` and `log_metric(name, value)`; the function
    gets those in its signature. Logged numbers become reward terms of weight 0. Images, in columns
    and messages, are PIL images, as in TRL.

    Args:
        function: The reward function, plain or async.
    """

    function: Callable[..., Any]

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without a column that the function's signature reads."""
        has_answers = _has_answers(tasks)
        for task in tasks:
            available = (*_columns(task), *TRL_ARGUMENTS)
            if not has_answers:
                available = tuple(name for name in available if name != "answer")
            for name in required_names(self.function):
                if name not in available:
                    raise ConfigError(
                        f"reward: the parameter {name!r} of {_function_name(self.function)} is no"
                        f" column of the task {str(task.prompt)[:60]!r}. {suggest(name, available)}"
                        " Add the column to the rows, or rename the parameter."
                    )

    def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardValue] | Awaitable[Sequence[RewardValue]]:
        logged: dict[str, Sequence[Any]] = {}
        columns = with_pictures(_columns(task))
        arguments = {
            **{name: [value] * len(rollouts) for name, value in columns.items()},
            "prompts": [with_pictures(_trl_prompt(task.prompt))] * len(rollouts),
            "completions": [with_pictures(_trl_completion(task, x)) for x in rollouts],
            "completion_ids": [_completion_ids(rollout) for rollout in rollouts],
            "trainer_state": None,
            "log_extra": lambda column, values: logged.update({column: list(values)}),
            "log_metric": lambda name, value: logged.update({name: [value] * len(rollouts)}),
        }
        hint = "" if isinstance(task.prompt, str) else MESSAGES_HINT
        with typed_columns(columns, hint):
            result = self.function(**accepted_arguments(self.function, arguments))
        if inspect.isawaitable(result):
            return _await_and_merge(result, logged)
        return _merge_logged(result, logged)


async def _await_and_merge(
    result: Awaitable[Any], logged: Mapping[str, Sequence[Any]]
) -> Sequence[RewardValue]:
    return _merge_logged(await result, logged)


def _merge_logged(result: Any, logged: Mapping[str, Sequence[Any]]) -> Any:
    """The values, each with the numbers logged for it; the caller validates the values."""
    if not logged or not isinstance(result, Sequence):
        return result
    fitting = {name: values for name, values in logged.items() if len(values) == len(result)}
    return [
        {**{name: values[i] for name, values in fitting.items()}, "score": score}
        for i, score in enumerate(result)
    ]


@component
class VerlReward(PerRolloutReward):
    """A reward function of verl for one rollout: `compute_score(data_source, solution_str, …)`.

    Args:
        function: The reward function, plain or async; it gets those of the arguments `data_source`,
            `solution_str`, `ground_truth` and `extra_info` that are in its signature.
    """

    function: Callable[..., Any]

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` if the function reads answers and no task has one."""
        if "ground_truth" in required_names(self.function) and not _has_answers(tasks):
            raise ConfigError(
                f"reward: the parameter 'ground_truth' of {_function_name(self.function)} is the"
                f" reference answer, and no task has one. {suggest('answer', tasks[0].columns)}"
                """ Name its column: --tasks "FILE(answer='COLUMN')"."""
            )

    def score(self, task: Task, rollout: Rollout) -> Any:
        arguments = {
            "data_source": task.source,
            "solution_str": rollout.text,
            "ground_truth": task.reference_answer,
            "extra_info": _extra_info(task),
        }
        with typed_columns({"ground_truth": task.reference_answer}):
            result = self.function(**accepted_arguments(self.function, arguments))
        return _await_score(result) if inspect.isawaitable(result) else _score_of(result)


async def _await_score(result: Awaitable[Any]) -> RewardValue:
    return _score_of(await result)


def _score_of(result: Any) -> Any:
    """The score; some functions of verl return a tuple that begins with it."""
    return result[0] if isinstance(result, tuple) and result else result


@component
class VerlBatchReward:
    """A reward function of verl's batch manager, which gets lists under the plural names.

    Args:
        function: The reward function, plain or async; it gets those of the arguments
            `data_sources`, `solution_strs`, `ground_truths` and `extra_infos` that are in its
            signature.
    """

    function: Callable[..., Any]

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> Any:
        arguments = {
            "data_sources": [task.source] * len(rollouts),
            "solution_strs": [rollout.text for rollout in rollouts],
            "ground_truths": [task.reference_answer] * len(rollouts),
            "extra_infos": [_extra_info(task) for _ in rollouts],
        }
        return self.function(**accepted_arguments(self.function, arguments))


def _has_answers(tasks: Sequence[Task]) -> bool:
    """Whether some task has a reference answer, or a column `answer`."""
    return any(
        task.reference_answer is not None or task.columns.get("answer") is not None
        for task in tasks
    )


@contextmanager
def typed_columns(columns: Mapping[str, Any], hint: str = "") -> Generator[None]:
    """Add a hint, and the types of columns that are no text, to an error about a wrong type."""
    try:
        yield
    except (TypeError, AttributeError) as error:
        if hint:
            error.add_note(hint)
        types = {name: type(value).__name__ for name, value in columns.items()}
        if shown := ", ".join(f"{name} is {kind}" for name, kind in types.items() if kind != "str"):
            error.add_note(f"Columns that are no text: {shown}.")
        raise


def accepted_arguments(
    function: Callable[..., Any], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments in the function's signature; raises `ConfigError` if one is missing."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        accepted = dict(arguments)
    else:
        accepted = {p.name: arguments[p.name] for p in parameters if p.name in arguments}
    for name in required_names(function):
        if name not in accepted:
            raise ConfigError(f"The reward function requires {name!r}. {suggest(name, arguments)}")
    return accepted


def required_names(function: Callable[..., Any]) -> list[str]:
    """The parameters without a default in a function's signature."""
    parameters = inspect.signature(function).parameters.values()
    named = (p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL))
    return [p.name for p in named if p.default is p.empty]


def _function_name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


def _columns(task: Task) -> dict[str, Any]:
    columns = {"answer": task.reference_answer, "source": task.source, **task.columns}
    return {name: value for name, value in columns.items() if name not in NON_COLUMN_NAMES}


def with_pictures(value: Any) -> Any:
    """A value with PIL images in place of each `Image` in its lists and mappings."""
    if isinstance(value, Image):
        return open_picture(value.data)
    if isinstance(value, Mapping):
        return {name: with_pictures(inner) for name, inner in value.items()}
    return [*map(with_pictures, value)] if isinstance(value, list) else value


def _extra_info(task: Task) -> dict[str, Any]:
    return dict(task.columns.get("extra_info") or {})


def _trl_prompt(prompt: Observation) -> str | list[Message]:
    return prompt if isinstance(prompt, str) else list(prompt)


def _trl_completion(task: Task, rollout: Rollout) -> str | list[Message]:
    """The policy's text if the prompt is text, else the messages after the prompt."""
    return rollout.text if isinstance(task.prompt, str) else list(_messages(rollout))


def _messages(rollout: Rollout) -> Iterator[Message]:
    """The messages after the prompt; a response without an observation continues a message."""
    text = ""
    for number, (observation, response) in enumerate(rollout.turns):
        if number and observation:
            yield {"role": "assistant", "content": text}
            if isinstance(observation, str):
                yield {"role": "user", "content": observation}
            else:
                yield from observation[: -1 if prefill_text(observation) else None]
            text = ""
        text += turn_text(observation, response)
    if rollout.turns:
        yield {"role": "assistant", "content": text}


def _completion_ids(rollout: Rollout) -> list[Any]:
    return list(chain.from_iterable(response.items for _, response in rollout.turns))
