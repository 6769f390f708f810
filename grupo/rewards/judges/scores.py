"""Scores of replies, and the checks that all judges share."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from grupo.core.component import check_field
from grupo.core.forms import placeholders
from grupo.core.types import Task
from grupo.rewards.judges.base import ChatModel, Conversation, JudgeError, ReplyOrError
from grupo.rewards.judges.parsers import ReplyError, quoted
from grupo.rewards.judges.template import check_placeholders, conversation, task_values

T = TypeVar("T")


def parse_reply(parse: Callable[[str], T], reply: ReplyOrError) -> T | JudgeError:
    """The parsed reply, or the error of a reply that is missing, cut or malformed."""
    if isinstance(reply, JudgeError):
        return reply
    if reply.finish_reason == "length":
        return JudgeError(f"the judge's reply was cut at the token limit: {quoted(reply.text)}")
    try:
        return parse(reply.text)
    except ReplyError as error:
        return JudgeError(f"the judge's reply: {error}")


def check_judge(judge: Any, needed: Iterable[str]) -> None:
    """Raise `ConfigError` if a judge's model is none, or its prompt lacks a placeholder.

    Args:
        judge: A component with `model` and `prompt`.
        needed: Placeholders without which the judge cannot see what it judges.
    """
    check_field(
        judge, "model", isinstance(judge.model, ChatModel), "ChatEndpoint(…), LocalModel(…)"
    )
    for name in needed:
        is_there = name in placeholders(judge.prompt)
        check_field(judge, "prompt", is_there, f"a text with the placeholder {{{name}}}")


def prepare_judge(judge: Any, tasks: Sequence[Task], provided: Iterable[str]) -> None:
    """Raise `ConfigError` if a task lacks a column of the prompts, or the model cannot be used.

    Args:
        judge: A component with `model`, `prompt` and `system`.
        tasks: The tasks of the run.
        provided: Placeholders that the judge itself fills.
    """
    names = placeholders(judge.system, judge.prompt)
    check_placeholders(f"{type(judge).__name__}.prompt", names, tasks, provided)
    judge.model.prepare()


def judge_conversation(judge: Any, task: Task, **provided: str) -> Conversation:
    """The messages of a judge about a task, with the placeholders of its prompts replaced.

    Args:
        judge: A component with `prompt` and `system`.
        task: Its columns, prompt and reference answer replace the placeholders of their names.
        provided: Text of the placeholders that the judge itself fills, such as {completion}.
    """
    values = task_values(task, placeholders(judge.system, judge.prompt))
    return conversation(judge.system, judge.prompt, {**values, **provided})
