"""The interface of an inference engine: requests, replies, stop conditions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from grupo.core.decoding import Decoding
from grupo.inference.sampling_params import Sampling
from grupo.util.errors import ConfigError


@dataclass(frozen=True)
class Request:
    """A request to continue `tokens`, or to score them.

    Args:
        tokens: the prompt, followed by the tokens to score if there are any.
        rng_key: identifies the random stream of the rollout.
        sampling: the distribution to sample from.
        stop_strings: strings that end this answer, in addition to the engine's stop conditions.
        max_new_tokens: limit of this answer, in addition to the engine's.
        num_scored: how many tokens at the end of `tokens` to score; nothing is then generated.
        aux_head: name of an auxiliary head to evaluate after `tokens`; nothing is then generated.
        num_likeliest: how many of the likeliest next tokens to return; nothing is then generated.
        role: role of the rollout, by which tokens are counted.
        decoding: how the model is changed while it answers; None for an ordinary answer.
    """

    tokens: tuple[int, ...]
    rng_key: int
    sampling: Sampling = Sampling()
    stop_strings: tuple[str, ...] = ()
    max_new_tokens: int = 1 << 30
    num_scored: int = 0
    aux_head: str = ""
    num_likeliest: int = 0
    role: str = ""
    decoding: Decoding | None = None

    @property
    def generates(self) -> bool:
        """Whether the reply is an answer."""
        return not (self.num_scored or self.aux_head or self.num_likeliest)

    @property
    def num_tokens(self) -> int:
        """Number of tokens that the engine is given: of a prompt, or of a context to score."""
        return len(self.tokens) + (self.decoding.num_given if self.decoding else 0)

    @property
    def can_be_continued(self) -> bool:
        """Whether several requests may generate the reply, each a part of it."""
        return self.generates and not self.decoding


@dataclass(frozen=True)
class Reply:
    """The reply of an engine to a request.

    Args:
        tokens: the generated tokens.
        logp: log-probability of each generated, scored or next token, in nats.
        finish_reason: "end" (a stop token), "stop" (a stop string) or "length".
        entropy: of the distribution of each scored token, in nats; in a steered answer, of each
            generated token.
        head_value: output of the auxiliary head.
        parts: update steps of the weights that generated each part of the tokens, and its number of
            tokens; empty if all have the weights of the engine.
        routes: experts that routers chose for each token of prompt and answer but the last one, as
            `encode_routes` writes them; "" if they are not recorded.
        next_tokens: the likeliest next tokens, likeliest first.
        num_cached: tokens of the request that were in the engine's prefix cache, or were computed
            for another request of the batch.
        continuations: number of tokens and finish reason of each of several continuations, which
            `tokens` has one after the other; empty for one answer.
        gradient_steps: number of gradient steps that the engine took while it generated.
    """

    tokens: tuple[int, ...] = ()
    logp: tuple[float, ...] = ()
    finish_reason: str = "length"
    entropy: tuple[float, ...] = ()
    head_value: float = 0.0
    parts: tuple[tuple[int, int], ...] = ()
    routes: str = ""
    next_tokens: tuple[int, ...] = ()
    num_cached: int = 0
    continuations: tuple[tuple[int, str], ...] = ()
    gradient_steps: int = 0

    @property
    def num_generated(self) -> int:
        """Number of generated tokens; next tokens, and a gradient step, count as one each.

        They cost the engine a step of decoding, or more.
        """
        return len(self.tokens) + bool(self.next_tokens) + self.gradient_steps

    def split(self) -> "list[Reply]":
        """The reply of each continuation; the reply itself if it is one answer."""
        ends = list(accumulate(count for count, _ in self.continuations))
        return [
            replace(
                self,
                tokens=self.tokens[end - count : end],
                logp=self.logp[end - count : end],
                finish_reason=reason,
                continuations=(),
            )
            for end, (count, reason) in zip(ends, self.continuations, strict=True)
        ] or [self]


@dataclass(frozen=True)
class StopConditions:
    """Conditions that end an answer.

    Args:
        max_new_tokens: the most tokens of an answer.
        eos_token_ids: tokens that end an answer.
        stop_strings: strings that end an answer.
        context_length: the most tokens of prompt and answer together.
    """

    max_new_tokens: int
    eos_token_ids: tuple[int, ...]
    stop_strings: tuple[str, ...] = ()
    context_length: int = 1 << 30

    def remaining_tokens(self, request: Request) -> int:
        """The most tokens that may be generated for a request; 0 or less if its context is full."""
        return min(
            self.max_new_tokens, request.max_new_tokens, self.context_length - len(request.tokens)
        )

    def for_request(self, request: Request) -> "StopConditions":
        """These conditions with the request's own stop strings added."""
        if not request.stop_strings:
            return self
        return replace(self, stop_strings=(*self.stop_strings, *request.stop_strings))


def batchable_groups(requests: Sequence[Request]) -> Iterator[list[int]]:
    """Indices of the requests with equal sampling and stop strings, group by group."""
    settings = [(request.sampling, request.stop_strings) for request in requests]
    order = canonical_order(requests)
    for setting in sorted(set(settings), key=str):
        yield [i for i in order if settings[i] == setting]


def canonical_order(requests: Sequence[Request]) -> list[int]:
    """Indices of the requests in an order that does not depend on their arrival.

    >>> a, b = Request((1,), rng_key=7), Request((2, 3), rng_key=5)
    >>> canonical_order([a, b]), canonical_order([b, a])
    ([1, 0], [0, 1])
    """
    keys = [(request.rng_key, hash(request.tokens)) for request in requests]
    return sorted(range(len(requests)), key=keys.__getitem__)


def check_generate_only(requests: Sequence[Request], engine_name: str) -> None:
    """Raises ConfigError if a request is no ordinary one, for engines that can only generate."""
    check_scores_nothing(requests, engine_name)
    check_ordinary_decoding(requests, engine_name)
    if any(request.num_likeliest for request in requests):
        raise ConfigError(
            f"turn_strategy: {engine_name} has no likeliest next tokens."
            " Allowed: a causal language model, such as CausalLM."
        )


def check_scores_nothing(requests: Sequence[Request], engine_name: str) -> None:
    """Raises ConfigError if a request scores tokens, for engines that cannot."""
    if any(request.num_scored for request in requests):
        raise ConfigError(
            f"sampler: {engine_name} cannot score given tokens."
            " Allowed: a language model that samples in this process."
        )


def check_ordinary_decoding(requests: Sequence[Request], engine_name: str) -> None:
    """Raises ConfigError if a request acts inside the model, for engines that cannot."""
    if any(request.decoding for request in requests):
        raise ConfigError(
            f"turn_strategy: it acts inside the model, which {engine_name} does not allow."
            " Allowed: a causal language model that generates in this process, with packed"
            " attention."
        )


class Engine(Protocol):
    """Answers requests: yields the index of a request and its reply, as soon as it is finished."""

    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]: ...


class ContextStates(NamedTuple):
    """Hidden states that a model computes after contexts.

    Args:
        hidden: last hidden state after each context.
        num_read: how many tokens of each context were computed for it.
    """

    hidden: Float[Tensor, "P H"]
    num_read: tuple[int, ...]


@runtime_checkable
class ContextReader(Protocol):
    """An engine that also returns hidden states: it can reuse keys and values of its answers."""

    def read_contexts(self, contexts: Sequence[tuple[int, ...]]) -> ContextStates:
        """The last hidden state after each context, without a gradient.

        Args:
            contexts: tokens of each context, at least one and no more than the model's context
                length.
        """
        ...


def generate_all(engine: Engine, requests: Sequence[Request]) -> list[Reply]:
    """The replies to all requests, in the order of the requests."""
    replies = dict(engine(requests))
    return [replies[i] for i in range(len(requests))]
