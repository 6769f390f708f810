"""Whoever answers requests with a policy's weights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from grupo.core.errors import ConfigError
from grupo.inference.sampling_params import Sampling


@dataclass(frozen=True)
class Request:
    """Go on from `tokens` with the random stream `key`, drawing by `sampling`.

    The answer ends where all do, and besides at the texts in `stop` and after `limit` tokens. Where
    the last `given` tokens are given nothing is drawn: it is asked how likely they are.
    """

    tokens: tuple[int, ...]
    rng_key: int
    sampling: Sampling = Sampling()
    stop_strings: tuple[str, ...] = ()
    max_new_tokens: int = 1 << 30
    num_scored: int = 0
    aux_head: str = (
        ""  # who is asked for a number of the state after `tokens`, in place of an answer
    )


@dataclass(frozen=True)
class Reply:
    """What was said: tokens, the log-probability of each, and why it ended.

    Of given tokens besides the entropy of what each could have been, in nats.
    """

    tokens: tuple[int, ...] = ()
    logp: tuple[float, ...] = ()
    finish_reason: str = "length"
    entropy: tuple[float, ...] = ()
    head_value: float = 0.0  # what a helper said, who was asked in place of an answer


@dataclass(frozen=True)
class StopConditions:
    """When an answer ends."""

    max_new_tokens: int  # tokens an answer may have
    eos_token_ids: tuple[int, ...]  # tokens that end an answer
    stop_strings: tuple[str, ...] = ()  # texts that end an answer
    context_length: int = 1 << 30  # tokens the model can read

    def remaining_tokens(self, request: Request) -> int:
        """How many tokens may follow."""
        return min(
            self.max_new_tokens, request.max_new_tokens, self.context_length - len(request.tokens)
        )

    def for_request(self, request: Request) -> "StopConditions":
        """The same with the texts at which this one's answer ends besides."""
        return (
            replace(self, stop_strings=(*self.stop_strings, *request.stop_strings))
            if request.stop_strings
            else self
        )


def batchable_groups(requests: Sequence[Request]) -> Iterator[list[int]]:
    """Which requests are drawn and end in the same way, and can be answered together."""
    ways = [(request.sampling, request.stop_strings) for request in requests]
    order = canonical_order(requests)
    for way in sorted(set(ways), key=str):
        yield [i for i in order if ways[i] == way]


def canonical_order(requests: Sequence[Request]) -> list[int]:
    """The requests in an order of their own, whoever came first.

    >>> a, b = Request((1,), rng_key=7), Request((2, 3), rng_key=5)
    >>> canonical_order([a, b]), canonical_order([b, a])
    ([1, 0], [0, 1])
    """
    lots = [(request.rng_key, hash(request.tokens)) for request in requests]
    return sorted(range(len(requests)), key=lots.__getitem__)


def check_generate_only(requests: Sequence[Request], engine_name: str) -> None:
    """Refuse to be asked how likely given words are where one can only draw."""
    if any(request.num_scored for request in requests):
        raise ConfigError(
            f"sample: {engine_name} does not say how likely given words are."
            " Allowed: a language model that samples in this process."
        )


class Engine(Protocol):
    """Answers requests, each as soon as it has ended: its place among them, and the reply."""

    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]: ...


def generate_all(engine: Engine, requests: Sequence[Request]) -> list[Reply]:
    """Every reply, in the order of the requests."""
    found = dict(engine(requests))
    return [found[i] for i in range(len(requests))]
