"""A batcher that counts the generated tokens, at the one place where engines return replies."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from grupo.inference.batcher import BatchHandler, DynamicBatcher


class GenerationRequest(Protocol):
    """A request of a rollout with a role."""

    @property
    def role(self) -> str:
        """The rollout's role; "" for rollouts without one."""
        ...


class GenerationReply(Protocol):
    """A reply with generated items: tokens, denoising steps or latent thoughts."""

    @property
    def num_generated(self) -> int:
        """Number of generated items; 0 if the request only scored or predicted."""
        ...


RequestT = TypeVar("RequestT", bound=GenerationRequest)
ReplyT = TypeVar("ReplyT", bound=GenerationReply)


class CountingBatcher(DynamicBatcher[RequestT, ReplyT]):
    """A dynamic batcher that counts the items of all replies, by the role of the rollout.

    A reply is counted when the engine returns it, before the sampler receives it: whether the
    sampler keeps, cuts, discards or has cancelled the answer makes no difference. Prompt tokens are
    not counted, because shared prefixes are cached.

    Args:
        engine: answers a batch; yields the index of a request and its reply.
    """

    def __init__(self, engine: BatchHandler[RequestT, ReplyT]) -> None:
        self._counts = Counter[str]()

        def answer(requests: Sequence[RequestT]) -> Iterator[tuple[int, ReplyT]]:
            for index, reply in engine(requests):
                self._counts[requests[index].role] += reply.num_generated
                yield index, reply

        super().__init__(answer)

    @property
    def generated_tokens(self) -> Mapping[str, int]:
        """Number of items generated so far by role, in alphabetical order."""
        return {role: self._counts[role] for role in sorted(self._counts)}
