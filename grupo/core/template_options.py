"""Options of a chat template, as keys of a message: descriptions of tools, and arguments.

A prompt is the only thing that travels from a task through samplers and environments to the
policy. The options of its template therefore stand in one of its messages.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from grupo.core.message_content import content_text
from grupo.core.types import Message, Observation

TOOLS = "tools"
TEMPLATE_KWARGS = "chat_template_kwargs"


class TemplateOptions(NamedTuple):
    """Messages for a chat template, and what it reads beside them.

    Args:
        messages: The messages without the keys of this module.
        tools: Descriptions of tools, as functions of JSON schema.
        kwargs: Further variables of the template, by name.
    """

    messages: list[dict[str, Any]]
    tools: tuple[Mapping[str, Any], ...] = ()
    kwargs: Mapping[str, Any] = {}


def split_options(messages: Sequence[Message]) -> TemplateOptions:
    """The messages of a chat, apart from the options that they hold.

    Later tools replace earlier ones, and later arguments those of the same name. A text in `tools`
    stays in its message, where Phi-4-mini's template reads it.

    >>> split_options(({"role": "user", "content": "?", "chat_template_kwargs": {"a": 1}},))
    TemplateOptions(messages=[{'role': 'user', 'content': '?'}], tools=(), kwargs={'a': 1})
    """
    plain: list[dict[str, Any]] = []
    tools: tuple[Mapping[str, Any], ...] = ()
    kwargs: dict[str, Any] = {}
    for message in messages:
        rest = dict(message)
        kwargs |= rest.pop(TEMPLATE_KWARGS, None) or {}
        if not isinstance(rest.get(TOOLS), str):
            tools = tuple(rest.pop(TOOLS, None) or tools)
        plain.append(rest)
    return TemplateOptions(plain, tools, kwargs)


def shortest_prompt(prompt: Observation) -> Observation:
    """The first character of a prompt as a prompt of its own, with the same template options.

    >>> shortest_prompt(({"role": "user", "content": "Hello", "chat_template_kwargs": {"a": 1}},))
    ({'role': 'user', 'content': 'H', 'chat_template_kwargs': {'a': 1}},)
    """
    if isinstance(prompt, str):
        return prompt.strip()[:1] or prompt
    character = content_text(prompt[-1].get("content")).strip()[:1]
    _, tools, kwargs = split_options(prompt)
    shortest = ({"role": "user", "content": character or "?"},)
    return with_tools(with_template_kwargs(shortest, kwargs), tools)


def with_template_kwargs(prompt: Observation, kwargs: Mapping[str, Any]) -> Observation:
    """The prompt with further arguments of its chat template; a text becomes a user's message.

    >>> with_template_kwargs("?", {"enable_thinking": False})
    ({'role': 'user', 'content': '?', 'chat_template_kwargs': {'enable_thinking': False}},)
    """
    return _with_option(prompt, TEMPLATE_KWARGS, dict(kwargs)) if kwargs else prompt


def with_tools(prompt: Observation, tools: Sequence[Mapping[str, Any]]) -> Observation:
    """The prompt with tools that its chat template describes; a text becomes a user's message.

    >>> with_tools("?", [{"type": "function"}])
    ({'role': 'user', 'content': '?', 'tools': ({'type': 'function'},)},)
    """
    return _with_option(prompt, TOOLS, tuple(tools)) if tools else prompt


def _with_option(prompt: Observation, name: str, value: object) -> Observation:
    messages = ({"role": "user", "content": prompt},) if isinstance(prompt, str) else prompt
    first, *rest = messages
    return ({**first, name: value}, *rest)
