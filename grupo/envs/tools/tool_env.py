"""An environment in which the policy calls tools, until it answers without a call."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from grupo.core.component import component
from grupo.core.message_content import append_to
from grupo.core.ranges import PositiveInt
from grupo.core.types import Observation, Task
from grupo.envs.game_env import StepResult
from grupo.envs.tools.tool_calls import (
    CLOSE_TAG,
    OPEN_TAG,
    CallableTool,
    Tool,
    ToolCallError,
    ToolProvider,
    parse_calls,
    tool_specs,
)
from grupo.util.errors import ConfigError, suggest

TOOLS_PROMPT = f"""# Tools

You may call these functions:
<tools>
{{tools}}
</tools>
Write each call as JSON: {OPEN_TAG}{{{{"name": ..., "arguments": {{{{...}}}}}}}}{CLOSE_TAG}"""


@component
class Toolbox:
    """Environment factory for tool use; pass it to `MultiTurn(Toolbox(...), role="tool")`.

    The first observation describes the tools and then gives the task's prompt. The policy writes
    calls in the format of Hermes and Qwen. The result of a malformed or failing call is one line
    that begins with "error:". Reward terms count the calls: `tool_calls` that ran, and `malformed`,
    `unknown` (no such tool), `arguments` (unfit ones) and `tool_errors` (the tool raised).

    Args:
        tools: Functions or callable components, whose arguments are str, int, float or bool, and
            `McpServer`s.
        max_result_chars: Characters after which the result of a call is truncated.
    """

    tools: tuple[Tool | ToolProvider, ...]
    max_result_chars: PositiveInt = 2000

    def __post_init__(self) -> None:
        if not any(isinstance(tool, ToolProvider) for tool in self.tools):
            tool_specs(self.tools)

    def check(self) -> None:
        """Raises `ConfigError` if a server of tools does not start, or two tools have one name."""
        tool_specs(self.tools)

    def __call__(self) -> "ToolSession":
        return ToolSession(tool_specs(self.tools), self.max_result_chars)


def with_tools_prompt(prompt: Observation, schemas: Sequence[str]) -> Observation:
    """The prompt with a description of the tools, in the system message of a chat.

    Args:
        prompt: The task's prompt.
        schemas: The function schema of each tool as JSON.
    """
    tools_prompt = TOOLS_PROMPT.format(tools="\n".join(schemas))
    if isinstance(prompt, str):
        return f"{tools_prompt}\n\n{prompt}"
    first, *rest = prompt
    if first.get("role") != "system":
        return ({"role": "system", "content": tools_prompt}, *prompt)
    content = append_to(first.get("content"), f"\n\n{tools_prompt}")
    return ({**first, "content": content}, *rest)


class ToolSession:
    """A session of tool calls, without state between them."""

    def __init__(self, tools: Mapping[str, CallableTool], max_result_chars: int) -> None:
        self.tools = tools
        self.max_result_chars = max_result_chars

    def reset(self, task: Task) -> Observation:
        """The description of the tools, followed by the task's prompt."""
        return with_tools_prompt(task.prompt, [tool.schema() for tool in self.tools.values()])

    def step(self, text: str) -> StepResult:
        """The results of all calls in the text; the session is done if there is none."""
        counts = Counter[str]()
        results = [
            self._run_call(call, counts)[: self.max_result_chars] for call in parse_calls(text)
        ]
        return StepResult("\n".join(results), done=not results, counts=counts)

    def _run_call(self, call: tuple[str, object] | ToolCallError, counts: Counter[str]) -> str:
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

    def _resolve_call(self, call: tuple[str, object] | ToolCallError) -> Callable[[], object]:
        """The call as a function without arguments; raises `ToolCallError` if it has an error."""
        if isinstance(call, ToolCallError):
            raise call
        name, call_arguments = call
        if name not in self.tools:
            raise ToolCallError(
                "unknown", f"there is no tool {name!r}. {suggest(name, self.tools)}"
            )
        tool = self.tools[name]
        arguments = tool.validate_arguments(call_arguments)
        return lambda: tool.function(**arguments)
