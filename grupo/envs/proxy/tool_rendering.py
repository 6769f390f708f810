"""How tools, calls and results are written for a policy: its format, and what describes them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal

from grupo.core.template_options import with_tools
from grupo.core.types import Message
from grupo.envs.proxy.messages import calls_of
from grupo.envs.tools.formats import (
    DEFAULT_FORMAT,
    FormatName,
    ToolCall,
    ToolFormat,
    format_named,
    format_of_template,
)
from grupo.envs.tools.tool_env import is_described_by_template, with_tools_prompt
from grupo.models.tool_templates import ToolTemplate


@dataclass(frozen=True)
class ToolRendering:
    """The format of calls, and whether the chat template or the prompt describes the tools.

    Args:
        format: How calls are written, as in `Toolbox`.
        described_by: What describes the tools and renders calls and results, as in `Toolbox`.
    """

    format: FormatName = "auto"
    described_by: Literal["auto", "template", "prompt"] = "auto"

    @property
    def tool_format(self) -> ToolFormat:
        """The format of calls."""
        return format_named(self.format)

    @property
    def uses_template(self) -> bool:
        """Whether the chat template describes the tools."""
        return is_described_by_template(self.tool_format, self.described_by)

    def split_answer(
        self, text: str, tools: Sequence[Mapping[str, Any]]
    ) -> tuple[str, tuple[ToolCall, ...]]:
        """The text before the first tool call of an answer, and its calls.

        An answer with a malformed call is a text without calls, so that nothing of it is lost.

        Args:
            text: The answer.
            tools: Function schemas of the tools that it may call; without any it has no calls.

        >>> call = '<tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>'
        >>> text, (call,) = ToolRendering().split_answer(f"So: {call}", [{"function": {}}])
        >>> text, call.name, call.arguments
        ('So:', 'add', {'a': 2})
        """
        tool_format = self.tool_format
        calls = tuple(tool_format.parse(text)) if tools else ()
        if not calls or any(call.error for call in calls):
            return tool_format.content(text), ()
        schemas = {tool["function"].get("name"): tool for tool in tools}
        typed = (
            replace(call, arguments=tool_format.convert(call.arguments, schemas.get(call.name, {})))
            for call in calls
        )
        return tool_format.content(text[: calls[0].start]).strip(), tuple(typed)

    def render(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()
    ) -> tuple[Message, ...]:
        """Messages of OpenAI's form as the policy reads them.

        Args:
            messages: The messages.
            tools: Function schemas of tools that are described before them.
        """
        if self.uses_template:
            rendered = with_tools(tuple(messages), tools)
        else:
            rendered = tuple(self._as_text(messages))
            schemas = [json.dumps(tool) for tool in tools]
            rendered = with_tools_prompt(rendered, schemas, self.tool_format) if tools else rendered
        assert not isinstance(rendered, str), "messages stay messages"
        return rendered

    def _as_text(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Messages without calls and results, whose texts hold them."""
        for is_result, group in groupby(messages, lambda message: message["role"] == "tool"):
            if is_result:
                results = (self.tool_format.result(message["content"]) for message in group)
                yield {"role": self.tool_format.result_role, "content": "\n".join(results)}
                continue
            for message in group:
                if "tool_calls" not in message:
                    yield message
                    continue
                written = self.tool_format.write(calls_of(message))
                texts = filter(None, (message["content"], written))
                yield {"role": "assistant", "content": "\n".join(texts)}


def rendering_of_template(template: ToolTemplate) -> ToolRendering:
    """The rendering for models with a chat template."""
    tool_format = format_of_template(template.text)
    if tool_format is None:
        return ToolRendering(DEFAULT_FORMAT.name, "prompt")
    by_template = template.describes_tools or not tool_format.prompt
    return ToolRendering(tool_format.name, "template" if by_template else "prompt")
