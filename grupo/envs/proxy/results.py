"""The result of a rollout that an agent made."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.model_call import UNREADABLE
from grupo.core.types import RewardResult, Rollout
from grupo.envs.multi_turn import NO_ROOM_ERROR
from grupo.envs.proxy.agent_thread import num_left
from grupo.envs.proxy.chat_request import ChatRequest
from grupo.envs.proxy.session import Ended
from grupo.envs.proxy.tool_rendering import ToolRendering
from grupo.envs.reward_parsing import NOT_A_NUMBER_ERRORS, finite_float, weighted_reward
from grupo.envs.session_cache import turn_texts


def agent_result(
    rollout: Rollout,
    requests: Sequence[ChatRequest],
    ended: Ended | None,
    scored: RewardResult | None,
    max_calls: int,
    rendering: ToolRendering,
) -> RewardResult:
    """The reward of an agent's rollout: the number that it returned, and that of reward terms.

    Args:
        rollout: The rollout.
        requests: The agent's requests that the policy answered.
        ended: The agent's end; None if the rollout ended before it.
        scored: The result of the reward terms; None if there are no reward terms.
        max_calls: The most calls of a rollout.
        rendering: How the policy writes tool calls.
    """
    terms = _counts_of_calls(rollout, requests, ended, max_calls, rendering)
    value = ended.value if ended else None
    errors = [
        ended.error if ended else "",
        "" if requests or not ended else "the agent ended without a call",
        call_error(rollout),
        scored.error if scored else "",
    ]
    error = next(filter(None, errors), "")
    try:
        agent_reward, agent_terms = _agent_value(value)
    except NOT_A_NUMBER_ERRORS as cause:
        error = error or f"the agent {cause}"
        agent_reward, agent_terms = 0.0, {}
    if ended and value is None and scored is None:
        error = error or "no reward: the agent returned no number, and there are no reward terms"
    terms |= {"agent_reward": agent_reward, **agent_terms}
    terms |= scored.reward_terms if scored else {}
    if error:
        return RewardResult(reward_terms=terms, error=error)
    reward = agent_reward + (scored.reward if scored else 0.0)
    return RewardResult(reward, terms, scored.step_values if scored else {})


def _counts_of_calls(
    rollout: Rollout,
    requests: Sequence[ChatRequest],
    ended: Ended | None,
    max_calls: int,
    rendering: ToolRendering,
) -> dict[str, float]:
    """Counts of an agent's calls, contexts and tool calls, and the limits that ended it, by name.

    The arguments are those of `agent_result`.
    """
    texts = turn_texts(rollout)
    answered = zip(texts, requests, strict=False)  # a call may be unanswered
    tool_calls = [rendering.split_answer(text, request.tools)[1] for text, request in answered]
    is_full = bool(rollout.turns) and not rollout.last_response.items
    counts: dict[str, float] = {
        "calls": float(len(texts)),
        "contexts": float(len(rollout.contexts)),
        "tool_calls": float(sum(map(len, tool_calls))),
        "call_limit": float(not ended and len(texts) >= max_calls),
        "context_full": float(not ended and is_full),
    }
    if left := num_left():
        counts["left_threads"] = float(left)
    options = Counter(name for request in requests for name in request.not_applied)
    return counts | {f"not_applied/{name}": float(count) for name, count in options.items()}


def call_error(rollout: Rollout) -> str:
    """Why the policy could not answer a call, or never got one; "" if it answered one."""
    unread = [r.text for _, r in rollout.turns if r.finish_reason == UNREADABLE]
    if unread:
        return f"the policy cannot read call {len(turn_texts(rollout)) + 1}: {unread[0]}"
    return "" if rollout.length else NO_ROOM_ERROR


def _agent_value(value: Any) -> tuple[float, Mapping[str, float]]:
    """The reward that an agent returned, and its further numbers as reward terms."""
    if value is None:
        return 0.0, {}
    if not isinstance(value, Mapping):
        return weighted_reward(finite_float(value)), {}
    if "score" not in value:
        raise ValueError(f"returned a mapping without 'score': {', '.join(map(str, value))}")
    extras = {f"agent_reward/{k}": finite_float(v) for k, v in value.items() if k != "score"}
    return weighted_reward(finite_float(value["score"])), extras
