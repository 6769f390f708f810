"""A world in which the policy calls tools, until it says something without a call."""

from collections import Counter
from collections.abc import Callable, Mapping

from grupo.core.component import component
from grupo.core.errors import ConfigError, suggest
from grupo.core.types import Observation, Task
from grupo.envs.session_cache import StepResult
from grupo.envs.tools.tool_calls import (
    CLOSE_TAG,
    OPEN_TAG,
    Tool,
    ToolCallError,
    ToolSpec,
    parse_calls,
    tool_spec,
)

TOOLS_PROMPT = f"""# Tools

You may call these functions:
<tools>
{{tools}}
</tools>
Write each call as JSON: {OPEN_TAG}{{{{"name": ..., "arguments": {{{{...}}}}}}}}{CLOSE_TAG}"""


@component
class Toolbox:
    """Opens sessions in which `tools` are called; what one says is cut after `longest` characters.

    `MultiTurn(Toolbox(...), role="tool")` is the world. The policy is told of the tools before the
    task's prompt, and writes calls as Hermes and Qwen do. It hears in one line what is wrong with
    a call. Counted are the calls that were run, `tools`, and those that went wrong: `format_penalty`,
    `unknown` tool, `arguments` that do not fit, and those in which a tool `raised`.
    """

    tools: tuple[Tool, ...]
    max_result_chars: int = 2000

    def __post_init__(self) -> None:
        names = [tool_spec(tool).name for tool in self.tools]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"tools: named {names}. Allowed: at least one, no name twice.")
        if self.max_result_chars < 1:
            raise ConfigError(f"longest: {self.max_result_chars}. Allowed: 1 or more.")

    def __call__(self) -> "ToolSession":
        return ToolSession(
            {one.name: one for one in map(tool_spec, self.tools)}, self.max_result_chars
        )


class ToolSession:
    """A session of calls. It remembers nothing: every call is for itself."""

    def __init__(self, tools: Mapping[str, ToolSpec], max_result_chars: int) -> None:
        self.tools, self.max_result_chars = tools, max_result_chars

    def reset(self, task: Task) -> Observation:
        """What tools there are, and what is asked."""
        told = TOOLS_PROMPT.format(tools="\n".join(tool.schema() for tool in self.tools.values()))
        if isinstance(task.prompt, str):
            return f"{told}\n\n{task.prompt}"
        first, *rest = task.prompt
        if first.get("role") != "system":
            return ({"role": "system", "content": told}, *task.prompt)
        return ({**first, "content": f"{first.get('content', '')}\n\n{told}"}, *rest)

    def step(self, text: str) -> StepResult:
        """What every call in the text came to; without one it is over."""
        counts = Counter[str]()
        said = [self._run_call(call, counts)[: self.max_result_chars] for call in parse_calls(text)]
        return StepResult("\n".join(said), done=not said, counts=counts)

    def _run_call(self, call: tuple[str, object] | ToolCallError, counts: Counter[str]) -> str:
        try:
            run = self._resolve_call(call)
        except ToolCallError as mistake:
            counts[mistake.kind] += 1
            return f"error: {mistake}"
        counts["tools"] += 1
        try:
            return str(run()) or "(nothing)"
        except ConfigError:  # not the policy's doing: the rollout has failed
            raise
        except Exception as error:  # the policy's own doing, for all that is known: it is told
            counts["raised"] += 1
            return f"error: {type(error).__name__}: {' '.join(str(error).split())}"

    def _resolve_call(self, call: tuple[str, object] | ToolCallError) -> Callable[[], object]:
        """What there is to be run; raises `ToolCallError`."""
        if isinstance(call, ToolCallError):
            raise call
        name, arguments = call
        if name not in self.tools:
            raise ToolCallError(
                "unknown", f"there is no tool {name!r}. {suggest(name, self.tools)}"
            )
        tool = self.tools[name]
        given = tool.validate_arguments(arguments)
        return lambda: tool.function(**given)
