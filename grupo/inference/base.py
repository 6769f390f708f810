"""Whoever answers requests with a policy's weights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from grupo.core.errors import Refused
from grupo.inference.sampling_params import Sampling


@dataclass(frozen=True)
class Request:
    """Go on from `tokens` with the random stream `key`, drawing by `sampling`.

    The answer ends where all do, and besides at the texts in `stop` and after `limit` tokens. Where
    the last `given` tokens are given nothing is drawn: it is asked how likely they are.
    """

    tokens: tuple[int, ...]
    key: int
    sampling: Sampling = Sampling()
    stop: tuple[str, ...] = ()
    limit: int = 1 << 30
    given: int = 0
    helper: str = ""  # who is asked for a number of the state after `tokens`, in place of an answer


@dataclass(frozen=True)
class Reply:
    """What was said: tokens, the log-probability of each, and why it ended.

    Of given tokens besides the entropy of what each could have been, in nats.
    """

    tokens: tuple[int, ...] = ()
    logp: tuple[float, ...] = ()
    stopped: str = "length"
    entropy: tuple[float, ...] = ()
    number: float = 0.0  # what a helper said, who was asked in place of an answer


@dataclass(frozen=True)
class Bounds:
    """When an answer ends."""

    limit: int  # tokens an answer may have
    ends: tuple[int, ...]  # tokens that end an answer
    stop: tuple[str, ...] = ()  # texts that end an answer
    context: int = 1 << 30  # tokens the model can read

    def room(self, request: Request) -> int:
        """How many tokens may follow."""
        return min(self.limit, request.limit, self.context - len(request.tokens))

    def of(self, request: Request) -> "Bounds":
        """The same with the texts at which this one's answer ends besides."""
        return replace(self, stop=(*self.stop, *request.stop)) if request.stop else self


def alike(requests: Sequence[Request]) -> Iterator[list[int]]:
    """Which requests are drawn and end in the same way, and can be answered together."""
    ways = [(request.sampling, request.stop) for request in requests]
    order = in_order(requests)
    for way in sorted(set(ways), key=str):
        yield [i for i in order if ways[i] == way]


def in_order(requests: Sequence[Request]) -> list[int]:
    """The requests in an order of their own, whoever came first.

    >>> a, b = Request((1,), key=7), Request((2, 3), key=5)
    >>> in_order([a, b]), in_order([b, a])
    ([1, 0], [0, 1])
    """
    lots = [(request.key, hash(request.tokens)) for request in requests]
    return sorted(range(len(requests)), key=lots.__getitem__)


def check_drawn(requests: Sequence[Request], who: str) -> None:
    """Refuse to be asked how likely given words are where one can only draw."""
    if any(request.given for request in requests):
        raise Refused(
            f"sample: {who} does not say how likely given words are."
            " Allowed: a language model that samples in this process."
        )


class Engine(Protocol):
    """Answers requests, each as soon as it has ended: its place among them, and the reply."""

    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]: ...


def answers(engine: Engine, requests: Sequence[Request]) -> list[Reply]:
    """Every reply, in the order of the requests."""
    found = dict(engine(requests))
    return [found[i] for i in range(len(requests))]
