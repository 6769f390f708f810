"""Rollouts, and their results under a judge."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from grupo.core.types import Response, RewardResult, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.rewards.judges import ChatReply, JudgeError
from grupo.rewards.judges.base import Conversation, ReplyOrError

TASK = Task("k", "2 + 2 =", "4", columns={"topic": "sums", "points": [1, 2]})


def rollout(text: str, prompt: str = "2 + 2 =") -> Rollout:
    return Rollout(((prompt, Response((1,), (0.0,), text=text)),))


def results(reward: Any, *texts: str, task: Task = TASK) -> Sequence[RewardResult]:
    """The results of a group in an environment with this reward alone."""
    env = SingleTurn((RewardTerm("quality", reward),))
    return asyncio.run(env.score(task, [rollout(text) for text in texts]))


class ScriptedModel:
    """A model whose reply is a function of the user message; errors and replies may be returned."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply
        self.conversations: list[Conversation] = []

    def prepare(self) -> None:
        pass

    async def complete(self, conversations: Sequence[Conversation]) -> Sequence[ReplyOrError]:
        self.conversations += conversations
        replies = (self.reply(messages[-1]["content"]) for messages in conversations)
        return [ChatReply(reply) if isinstance(reply, str) else reply for reply in replies]


def failing(message: str) -> JudgeError:
    return JudgeError(f"no reply to {message[:20]!r}")


def terms(result: RewardResult) -> Mapping[str, float]:
    """The reward terms of a result that has no error."""
    assert not result.error
    return result.reward_terms
