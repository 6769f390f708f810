"""The replies of a group's rollouts, recorded so that generation can be continued later.

`tokens_per_step` limits the number of tokens that a rollout generates within a step. A group that
has not ended is generated again in the next step: its sampler runs again, recorded replies are
returned without generation, and an answer that was paused is continued where it ended.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeVar, runtime_checkable

from grupo.core.interfaces import Actor
from grupo.inference.base import Reply, Request
from grupo.inference.continued_replies import ContinuingBatcher

T = TypeVar("T")


@runtime_checkable
class ResumableActor(Protocol):
    """An actor whose groups may be generated in several steps."""

    def for_group(self, key: int, record: "ReplyRecord") -> Actor:
        """The same policy, for a group that begins or continues.

        Args:
            key: as for `Policy.actor`, of the step in which the group began.
            record: the group's replies, which are returned again without generation.
        """
        ...


@dataclass(frozen=True)
class RecordedReply:
    """A reply to a request of a group.

    Args:
        reply: its tokens so far.
        is_complete: whether the answer has ended; otherwise it is continued in the next step.
    """

    reply: Reply
    is_complete: bool = True

    def to_data(self) -> list[Any]:
        """The reply as JSON data."""
        return [vars(self.reply), self.is_complete]

    @classmethod
    def from_data(cls, data: Any) -> "RecordedReply":
        """The reply that `to_data` returned."""
        fields, is_complete = data
        values: dict[str, Any] = {**fields}
        for name in ("tokens", "logp", "entropy", "next_tokens"):
            values[name] = tuple(fields[name])
        for name in ("parts", "continuations"):
            values[name] = tuple(map(tuple, fields[name]))
        return cls(Reply(**values), is_complete)


class ReplyRecord:
    """The replies that one group has received, and the state of its coroutines.

    Args:
        replies: replies of earlier steps, by the digest of the request.
        tokens_per_step: most tokens that a rollout generates before it is paused.
        on_change: called when a coroutine of the group pauses or receives a reply.
    """

    def __init__(
        self,
        replies: Mapping[str, RecordedReply],
        tokens_per_step: int,
        on_change: Callable[[], None],
    ) -> None:
        self.replies = dict(replies)
        self.tokens_per_step = tokens_per_step
        self.on_change = on_change
        self.generated = Counter[int]()  # tokens in this step, by the key of the random stream
        self.num_running = 0
        self.num_paused = 0

    @property
    def is_paused(self) -> bool:
        """Whether rollouts are paused, and no reply or observation is on its way."""
        return self.num_paused > 0 and self.num_running == 0

    def tokens_left(self, rng_key: int) -> int:
        """Tokens that the rollout with this random stream may generate before it is paused."""
        return max(0, self.tokens_per_step - self.generated[rng_key])

    async def running(self, work: Awaitable[T]) -> T:
        """The result of some work, during which the group is not paused."""
        self.num_running += 1
        try:
            return await work
        finally:
            self.num_running -= 1
            self.on_change()

    async def pause(self) -> NoReturn:
        """Wait until the step ends, which cancels the caller."""
        self.num_paused += 1
        self.on_change()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.num_paused -= 1
        raise AssertionError("a paused rollout is cancelled")


@dataclass(frozen=True)
class RecordingBatcher(ContinuingBatcher):
    """A batcher for one group: it records replies, and pauses rollouts at `tokens_per_step`.

    Args:
        record: of the group.
    """

    record: ReplyRecord

    async def __call__(self, request: Request) -> Reply:
        key = request_digest(request)
        known = self.record.replies.get(key)
        if known and known.is_complete:
            return known.reply
        begun = known.reply if known else Reply()
        recorded = await self._generate(request, begun)
        self.record.replies[key] = recorded
        if not recorded.is_complete:
            await self.record.pause()
        return recorded.reply

    async def _generate(self, request: Request, begun: Reply) -> RecordedReply:
        """The answer `begun`, continued by the tokens that this step allows."""
        limit = self.stop_conditions.remaining_tokens(request)
        if not request.can_be_continued or limit <= 0:
            return RecordedReply(await self.record.running(self.batcher(request)))
        count = min(limit - len(begun.tokens), self.record.tokens_left(request.rng_key))
        if count <= 0:
            return RecordedReply(begun, is_complete=False)
        self.record.generated[request.rng_key] += count  # before the rollout's other requests
        joined = await self.record.running(self.continue_reply(request, begun, count))
        self.record.generated[request.rng_key] -= count - (len(joined.tokens) - len(begun.tokens))
        return RecordedReply(joined, self.has_ended(request, joined))


def request_digest(request: Request) -> str:
    """A digest of the request: equal requests of a group receive equal replies."""
    return hashlib.blake2b(repr(request).encode(), digest_size=16).hexdigest()
