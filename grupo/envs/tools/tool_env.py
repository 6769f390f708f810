"""An environment in which the policy calls tools, until it answers without a call."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from grupo.core.component import component
from grupo.core.message_content import append_to
from grupo.core.ranges import PositiveInt
from grupo.core.template_options import with_tools
from grupo.core.types import Message, Observation, Task
from grupo.envs.game_env import StepResult
from grupo.envs.tools.formats import (
    DEFAULT_FORMAT,
    FORMATS,
    FormatName,
    ToolCall,
    ToolFormat,
    format_named,
)
from grupo.envs.tools.tool_calls import (
    CallableTool,
    Tool,
    ToolCallError,
    ToolProvider,
    tool_specs,
)
from grupo.util.errors import ConfigError, suggest


@component
class Toolbox:
    """Environment factory for tool use; pass it to `MultiTurn(Toolbox(...))`.

    The first observation describes the tools and gives the task's prompt. The policy writes calls
    in the format of its family. The result of a malformed or failing call is one line that begins
    with "error:". Reward terms count the calls: `tool_calls` that ran, and `malformed`, `unknown`
    (no such tool), `arguments` (unfit ones), `tool_errors` (the tool raised) and
    `truncated_results`.

    Args:
        tools: Functions or callable components, whose arguments are str, int, float or bool, and
            `McpServer`s.
        max_result_chars: Characters after which the result of a call is truncated.
        format: How calls are written. "auto" is replaced by the format of the policy's chat
            template when a run begins; outside of a run it is "hermes".
        described_by: The chat template describes the tools, and results are messages of the role
            "tool"; or the prompt describes them in words of grupo, and results are text, to which
            the `role` of `MultiTurn` applies. "auto" is replaced as `format` is; outside of a run
            it is "prompt", where the format allows it.
    """

    tools: tuple[Tool | ToolProvider, ...]
    max_result_chars: PositiveInt = 2000
    format: FormatName = "auto"
    described_by: Literal["auto", "template", "prompt"] = "auto"

    def __post_init__(self) -> None:
        if not any(isinstance(tool, ToolProvider) for tool in self.tools):
            tool_specs(self.tools)
        check_description(self.tool_format, self.described_by)

    @property
    def tool_format(self) -> ToolFormat:
        """The format of calls."""
        return format_named(self.format)

    @property
    def uses_template(self) -> bool:
        """Whether the chat template describes the tools."""
        return is_described_by_template(self.tool_format, self.described_by)

    @property
    def stop_strings(self) -> tuple[str, ...]:
        """Strings at which the policy has to stop, for `CausalLM(stop_strings=…)`."""
        return self.tool_format.stop_strings

    def check(self) -> None:
        """Raises `ConfigError` if a server of tools does not start, or two tools have one name."""
        tool_specs(self.tools)

    def __call__(self) -> "ToolSession":
        return ToolSession(tool_specs(self.tools), self)


def is_described_by_template(tool_format: ToolFormat, described_by: str) -> bool:
    """Whether the chat template describes tools; "auto" is the prompt, if the format has one.

    >>> is_described_by_template(format_named("hermes"), "auto")
    False
    """
    return described_by == "template" or (described_by == "auto" and not tool_format.prompt)


def check_description(tool_format: ToolFormat, described_by: str) -> None:
    """Raise `ConfigError` if the prompt is to describe tools that only a chat template can."""
    if described_by == "prompt" and not tool_format.prompt:
        allowed = ", ".join(sorted(name for name, f in FORMATS.items() if f.prompt))
        raise ConfigError(
            f"described_by: 'prompt', and only a chat template describes tools in the format"
            f" {tool_format.name!r}. Allowed: 'template', or the formats {allowed}."
        )


def with_tools_prompt(
    prompt: Observation, schemas: Sequence[str], tool_format: ToolFormat = DEFAULT_FORMAT
) -> Observation:
    """The prompt with a description of the tools, in the system message of a chat.

    Args:
        prompt: The task's prompt.
        schemas: The function schema of each tool as JSON.
        tool_format: The format of calls.
    """
    tools_prompt = tool_format.prompt.format(tools="\n".join(schemas))
    if isinstance(prompt, str):
        return f"{tools_prompt}\n\n{prompt}"
    first, *rest = prompt
    if first.get("role") != "system":
        return ({"role": "system", "content": tools_prompt}, *prompt)
    content = append_to(first.get("content"), f"\n\n{tools_prompt}")
    return ({**first, "content": content}, *rest)


class ToolSession:
    """A session of tool calls; its only state is the number of turns, which identifies calls.

    Args:
        tools: The tools by name.
        config: How calls are written, and results are given.
    """

    def __init__(self, tools: Mapping[str, CallableTool], config: Toolbox) -> None:
        self.tools = tools
        self.config = config
        self.num_turns = 0

    def reset(self, task: Task) -> Observation:
        """The task's prompt with a description of the tools."""
        schemas = [tool.schema() for tool in self.tools.values()]
        if self.config.uses_template:
            return with_tools(task.prompt, [json.loads(schema) for schema in schemas])
        return with_tools_prompt(task.prompt, schemas, self.config.tool_format)

    def step(self, text: str) -> StepResult:
        """The results of all calls in the text; the session is done if there is none."""
        counts = Counter[str]()
        tool_format = self.config.tool_format
        calls = list(tool_format.parse(text))
        results = [self._truncate(self._run_call(call, counts), counts) for call in calls]
        self.num_turns += 1
        observation: Observation = "\n".join(map(tool_format.result, results))
        if self.config.uses_template:
            pairs = enumerate(zip(calls, results, strict=True))
            observation = tuple(self._message(call, result, i) for i, (call, result) in pairs)
        return StepResult(observation, done=not calls, counts=counts)

    def _message(self, call: ToolCall, result: str, index: int) -> Message:
        """The message of a result; Mistral's template needs an identifier of nine characters."""
        call_id = call.call_id or f"{self.num_turns:04}{index:05}"
        name = call.name or "unknown"
        return {"role": "tool", "tool_call_id": call_id, "name": name, "content": result}

    def _truncate(self, result: str, counts: Counter[str]) -> str:
        limit = self.config.max_result_chars
        if len(result) <= limit:
            return result
        counts["truncated_results"] += 1
        return f"{result[:limit]}\n[the first {limit:,} of {len(result):,} characters]"

    def _run_call(self, call: ToolCall, counts: Counter[str]) -> str:
        try:
            run = self._resolve_call(call)
        except ToolCallError as error:
            counts[error.kind] += 1
            return f"error: {error}"
        counts["tool_calls"] += 1
        try:
            return str(run()) or "(nothing)"
        except ConfigError:  # the machine's fault, not the policy's: the rollout fails
            raise
        except Exception as error:  # possibly the fault of the policy's arguments
            counts["tool_errors"] += 1
            return f"error: {type(error).__name__}: {' '.join(str(error).split())}"

    def _resolve_call(self, call: ToolCall) -> Callable[[], object]:
        """The call as a function without arguments; raises `ToolCallError` if it has an error."""
        if call.error:
            raise ToolCallError("malformed", call.error)
        if call.name not in self.tools:
            raise ToolCallError(
                "unknown", f"there is no tool {call.name!r}. {suggest(call.name, self.tools)}"
            )
        tool = self.tools[call.name]
        typed = self.config.tool_format.convert(call.arguments, json.loads(tool.schema()))
        arguments = tool.validate_arguments(typed)
        return lambda: tool.function(**arguments)
