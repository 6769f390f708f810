"""Replies that are generated in several requests, with the tokens of one request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from transformers import PreTrainedTokenizerBase

from grupo.inference.base import Reply, Request, StopConditions
from grupo.inference.routes import continued_routes
from grupo.inference.stop_conditions import StopChecker

TOKENS_PER_REQUEST = 4  # of a streamed reply


class ReplyBatcher(Protocol):
    """Answers requests and counts the generated and the read tokens."""

    @property
    def generated_tokens(self) -> Mapping[str, int]: ...

    @property
    def read_tokens(self) -> Mapping[str, int]: ...

    async def __call__(self, request: Request) -> Reply: ...


@dataclass(frozen=True)
class ContinuingBatcher:
    """A batcher whose replies are generated in several requests.

    Args:
        batcher: answers requests.
        stop_conditions: of the policy's answers.
        tokenizer: decodes answers in the search for stop strings.
        policy_version: update steps of the weights that generate.
    """

    batcher: ReplyBatcher
    stop_conditions: StopConditions
    tokenizer: PreTrainedTokenizerBase
    policy_version: int

    @property
    def generated_tokens(self) -> Mapping[str, int]:
        return self.batcher.generated_tokens

    @property
    def read_tokens(self) -> Mapping[str, int]:
        return self.batcher.read_tokens

    async def continue_reply(self, request: Request, begun: Reply, count: int) -> Reply:
        """The reply `begun` to `request`, continued by at most `count` tokens."""
        tokens = (*request.tokens, *begun.tokens)
        reply = await self.batcher(replace(request, tokens=tokens, max_new_tokens=count))
        return self._join(request, begun, reply)

    def has_ended(self, request: Request, reply: Reply) -> bool:
        """Whether a reply to `request` is not to be continued."""
        limit = self.stop_conditions.remaining_tokens(request)
        return reply.finish_reason != "length" or len(reply.tokens) >= limit

    def _join(self, request: Request, begun: Reply, reply: Reply) -> Reply:
        """The answer, cut after a stop string that began in `begun` and ended in `reply`."""
        tokens = (*begun.tokens, *reply.tokens)
        checker = StopChecker(self.stop_conditions.for_request(request), self.tokenizer)
        length = checker.stop_string_end(tokens, len(begun.tokens)) if begun.tokens else None
        reason = reply.finish_reason if length is None else "stop"
        length = length or len(tokens)
        part = (self.policy_version, length - len(begun.tokens))
        return replace(
            reply,
            tokens=tokens[:length],
            logp=(*begun.logp, *reply.logp)[:length],
            finish_reason=reason,
            parts=(*begun.parts, part),
            routes=continued_routes(begun.routes, reply.routes),
        )


@dataclass(frozen=True)
class StreamingBatcher(ContinuingBatcher):
    """A batcher that passes the tokens of a reply on while it is generated.

    Args:
        on_tokens: receives all tokens of the reply so far, whenever there are more.
    """

    on_tokens: Callable[[tuple[int, ...]], None]

    async def __call__(self, request: Request) -> Reply:
        limit = self.stop_conditions.remaining_tokens(request)
        if not request.can_be_continued or limit <= 0:
            return await self.batcher(request)
        reply, num_known = Reply(), -1
        while len(reply.tokens) > num_known:  # an engine without memory continues no reply
            num_known = len(reply.tokens)
            count = min(TOKENS_PER_REQUEST, limit - num_known)
            reply = await self.continue_reply(request, reply, count)
            self.on_tokens(reply.tokens)
            if self.has_ended(request, reply):
                break
        return replace(reply, parts=())
