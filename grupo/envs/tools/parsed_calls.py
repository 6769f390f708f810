"""A reward for tool calls that can be read."""

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.envs.session_cache import turn_texts
from grupo.envs.tools.formats import FormatName, format_named
from grupo.rewards import PerRolloutReward


@component
class ParsedCalls(PerRolloutReward):
    """1 if the rollout calls a tool and none of its calls is malformed, else 0.

    Args:
        format: How calls are written, as in `Toolbox`.

    >>> from grupo.core.types import Response
    >>> call = '<tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>'
    >>> texts = (call, call[:-13], "no call")
    >>> rollouts = [Rollout((("?", Response((1,), (0.0,), text=text)),)) for text in texts]
    >>> [ParsedCalls().score(Task("k", "?"), rollout) for rollout in rollouts]
    [1.0, 0.0, 0.0]
    """

    format: FormatName = "auto"

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        parse = format_named(self.format).parse
        calls = [call for text in turn_texts(rollout) for call in parse(text)]
        return float(bool(calls) and not any(call.error for call in calls))
