"""Judges in this process: frozen language models of transformers."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from grupo.core.component import component
from grupo.core.dtypes import DtypeName
from grupo.core.ranges import NonEmptyString, NonNegativeFloat, PositiveInt
from grupo.core.usage import add_external_usage
from grupo.rewards.judges.base import ChatReply, Conversation, JudgeError, ReplyOrError
from grupo.util.event_loop import run_on_main_thread


@component
class LocalModel:
    """A frozen causal language model with a chat template, loaded once per process.

    The conversations of a group are one batch, whatever the other groups: replies are the same in
    every run on the same machine, and need no cache.

    Args:
        model: Folder or hub name.
        dtype: Type of weights and computations, "float32" or "bfloat16"; float32 where the device
            would emulate it.
        device: "auto" (the first GPU, otherwise the CPU), "cpu", "cuda" or "cuda:0".
        temperature: Sampling temperature; 0 is greedy. Samples are derived from the conversation.
        max_tokens: Token limit of a reply. A reply that reaches it is an error.
        allow_pickle: Also read weights from a pickle, whose author may be able to execute code.
    """

    model: NonEmptyString
    dtype: DtypeName = "bfloat16"
    device: str = "auto"
    temperature: NonNegativeFloat = 0.0
    max_tokens: PositiveInt = 512
    allow_pickle: bool = False

    def prepare(self) -> None:
        self._loaded()

    async def complete(self, conversations: Sequence[Conversation]) -> Sequence[ReplyOrError]:
        generate = partial(self._loaded().replies, conversations)
        replies: Sequence[ReplyOrError] = await run_on_main_thread(generate)
        for reply in replies:
            add_external_usage(_usage(reply))
        return replies

    async def reply_logprobs(
        self, conversations: Sequence[Conversation], replies: Sequence[str]
    ) -> Sequence[Sequence[float] | JudgeError]:
        """The log-probability of each of the given replies to each conversation, in nats."""
        score = partial(self._loaded().reply_logprobs, conversations, replies)
        logprobs: Sequence[Sequence[float] | JudgeError] = await run_on_main_thread(score)
        for found in logprobs:
            is_error = isinstance(found, JudgeError)
            add_external_usage({"judge_failed" if is_error else "judge_calls": 1.0})
        return logprobs

    def _loaded(self) -> Any:
        from grupo.rewards.judges.frozen_model import load_frozen  # imports transformers

        return load_frozen(
            self.model,
            self.dtype,
            self.device,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            allow_pickle=self.allow_pickle,
        )


def _usage(reply: ReplyOrError) -> dict[str, float]:
    if isinstance(reply, JudgeError):
        return {"judge_failed": 1.0}
    return {"judge_calls": 1.0, **_token_counts(reply)}


def _token_counts(reply: ChatReply) -> dict[str, float]:
    return {
        "judge_prompt_tokens": float(reply.prompt_tokens),
        "judge_completion_tokens": float(reply.completion_tokens),
    }
