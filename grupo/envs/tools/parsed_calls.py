"""A reward for tool calls that can be read."""

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.envs.tools.tool_calls import ToolCallError, parse_calls
from grupo.rewards import PerRolloutReward


@component
class ParsedCalls(PerRolloutReward):
    """1 if the rollout calls a tool and all its calls are JSON of the right form, else 0.

    >>> from grupo.core.types import Response
    >>> call = '<tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>'
    >>> texts = (call, call[:-13], "no call")
    >>> rollouts = [Rollout((("?", Response((), (), text=text)),)) for text in texts]
    >>> [ParsedCalls().score(Task("k", "?"), rollout) for rollout in rollouts]
    [1.0, 0.0, 0.0]
    """

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        calls = list(parse_calls(rollout.text))
        return float(bool(calls) and not any(isinstance(call, ToolCallError) for call in calls))
