"""A world in which the policy calls tools, until it says something without a call."""

from collections import Counter
from collections.abc import Callable, Mapping

from grupo.core.component import piece
from grupo.core.errors import Refused, nearest
from grupo.core.types import Observation, Task
from grupo.envs.session_cache import Heard
from grupo.envs.tools.tool_calls import CLOSE, OPEN, Declared, Mistake, Tool, calls, declared

TOLD = f"""# Tools

You may call these functions:
<tools>
{{tools}}
</tools>
Write each call as JSON: {OPEN}{{{{"name": ..., "arguments": {{{{...}}}}}}}}{CLOSE}"""


@piece
class Toolbox:
    """Opens sessions in which `tools` are called; what one says is cut after `longest` characters.

    `ManyTurns(Toolbox(...), role="tool")` is the world. The policy is told of the tools before the
    task's prompt, and writes calls as Hermes and Qwen do. It hears in one line what is wrong with
    a call. Counted are the calls that were run, `tools`, and those that went wrong: `malformed`,
    `unknown` tool, `arguments` that do not fit, and those in which a tool `raised`.
    """

    tools: tuple[Tool, ...]
    longest: int = 2000

    def __post_init__(self) -> None:
        names = [declared(tool).name for tool in self.tools]
        if not names or len(set(names)) < len(names):
            raise Refused(f"tools: named {names}. Allowed: at least one, no name twice.")
        if self.longest < 1:
            raise Refused(f"longest: {self.longest}. Allowed: 1 or more.")

    def __call__(self) -> "Calling":
        return Calling({one.name: one for one in map(declared, self.tools)}, self.longest)


class Calling:
    """A session of calls. It remembers nothing: every call is for itself."""

    def __init__(self, tools: Mapping[str, Declared], longest: int) -> None:
        self.tools, self.longest = tools, longest

    def reset(self, task: Task) -> Observation:
        """What tools there are, and what is asked."""
        told = TOLD.format(tools="\n".join(tool.schema() for tool in self.tools.values()))
        if isinstance(task.prompt, str):
            return f"{told}\n\n{task.prompt}"
        first, *rest = task.prompt
        if first.get("role") != "system":
            return ({"role": "system", "content": told}, *task.prompt)
        return ({**first, "content": f"{first.get('content', '')}\n\n{told}"}, *rest)

    def step(self, text: str) -> Heard:
        """What every call in the text came to; without one it is over."""
        counts = Counter[str]()
        said = [self._answer(call, counts)[: self.longest] for call in calls(text)]
        return Heard("\n".join(said), over=not said, counts=counts)

    def _answer(self, call: tuple[str, object] | Mistake, counts: Counter[str]) -> str:
        try:
            run = self._found(call)
        except Mistake as mistake:
            counts[mistake.kind] += 1
            return f"error: {mistake}"
        counts["tools"] += 1
        try:
            return str(run()) or "(nothing)"
        except Refused:  # not the policy's doing: the rollout has failed
            raise
        except Exception as error:  # the policy's own doing, for all that is known: it is told
            counts["raised"] += 1
            return f"error: {type(error).__name__}: {' '.join(str(error).split())}"

    def _found(self, call: tuple[str, object] | Mistake) -> Callable[[], object]:
        """What there is to be run; raises `Mistake`."""
        if isinstance(call, Mistake):
            raise call
        name, arguments = call
        if name not in self.tools:
            raise Mistake("unknown", f"there is no tool {name!r}. {nearest(name, self.tools)}")
        tool = self.tools[name]
        given = tool.checked(arguments)
        return lambda: tool.tool(**given)
