"""A batcher that counts generated and read tokens, at the one place where engines reply."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from grupo.core.answer_work import count_answer_work
from grupo.inference.batcher import BatchHandler, DynamicBatcher


class GenerationRequest(Protocol):
    """A request of a rollout with a role."""

    @property
    def role(self) -> str:
        """The rollout's role; "" for rollouts without one."""
        ...

    @property
    def num_tokens(self) -> int:
        """Number of tokens of the prompt or context; 0 if the request has no tokens."""
        ...


class GenerationReply(Protocol):
    """A reply with generated items: tokens, denoising steps or latent thoughts."""

    @property
    def num_generated(self) -> int:
        """Number of generated items; 0 if the request only scored or predicted."""
        ...

    @property
    def num_cached(self) -> int:
        """Number of tokens of the request that the engine did not compute for it."""
        ...


RequestT = TypeVar("RequestT", bound=GenerationRequest)
ReplyT = TypeVar("ReplyT", bound=GenerationReply)


class CountingBatcher(DynamicBatcher[RequestT, ReplyT]):
    """A dynamic batcher that counts generated and read tokens, by the role of the rollout.

    A reply is counted when the engine returns it, before the sampler receives it: whether the
    sampler keeps, cuts, discards or has cancelled the answer makes no difference. Read tokens are
    those of a request, without `num_cached` of its reply. An engine that does not know what a
    server took from its cache counts whole requests. The work is counted for the answer that it
    belongs to, too: see `grupo.core.answer_work`.

    Args:
        engine: answers a batch; yields the index of a request and its reply.
    """

    def __init__(self, engine: BatchHandler[RequestT, ReplyT]) -> None:
        self._generated = Counter[str]()
        self._read = Counter[str]()

        def answer(requests: Sequence[RequestT]) -> Iterator[tuple[int, ReplyT]]:
            for index, reply in engine(requests):
                request = requests[index]
                self._generated[request.role] += reply.num_generated
                self._read[request.role] += request.num_tokens - reply.num_cached
                yield index, reply

        super().__init__(answer)

    async def __call__(self, request: RequestT) -> ReplyT:
        reply = await super().__call__(request)
        tokens = reply.num_generated + request.num_tokens - reply.num_cached
        count_answer_work(int(reply.num_generated > 0), tokens)
        return reply

    @property
    def generated_tokens(self) -> Mapping[str, int]:
        """Number of items generated so far by role, in alphabetical order."""
        return {role: self._generated[role] for role in sorted(self._generated)}

    @property
    def read_tokens(self) -> Mapping[str, int]:
        """Number of tokens read so far by role, in alphabetical order."""
        return {role: self._read[role] for role in sorted(self._read)}
