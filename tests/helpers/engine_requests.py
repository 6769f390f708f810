"""Requests to local engines, reference log-probabilities, and records of model calls."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import MistralConfig

from grupo.inference.base import Reply, Request, StopConditions, generate_all
from grupo.inference.local import LocalEngine
from grupo.inference.memory_limits import MAX_CONTEXT_TOKENS, MemoryLimits
from grupo.kernels.decode_state import DecodeState
from grupo.kernels.prefix_cache import PrefixCache
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.util.rng import derive_key
from tests.helpers import tiny_lm
from tests.helpers.recurrent_model import save_random_model
from tests.helpers.tiny_lm import ALPHABET, CONTEXT, ENDS, WIDE

STOP_CONDITIONS = StopConditions(max_new_tokens=24, eos_token_ids=(0,), context_length=CONTEXT)
PROMPTS = ("Hi", "What is 2+2?", "A rather longer question, of words:", "Hi", "Go on")
FAMILIES: dict[str, Any] = {
    **tiny_lm.FAMILIES,
    "mistral": lambda: MistralConfig(**WIDE, **ENDS, sliding_window=4),
}


def policy_of(folder: Path, family: str, **options: Any) -> CausalPolicy:
    """A policy of a model family, with answers of at most 24 tokens."""
    model = save_random_model(folder, FAMILIES[family]())
    return CausalLM(model, max_new_tokens=24, **options).build()


def request_for(text: str, key: int) -> Request:
    return Request(encode(text), derive_key(0, key))


def encode(text: str) -> tuple[int, ...]:
    """One token for each character."""
    return tuple(map(ALPHABET.index, text))


def continuation(request: Request, reply: Reply, text: str = "", key: int | None = None) -> Request:
    """A request that continues a reply, with the same random stream unless a key is given."""
    rng_key = request.rng_key if key is None else derive_key(0, key)
    return Request((*request.tokens, *reply.tokens, *encode(text)), rng_key, request.sampling)


REQUESTS = [request_for(PROMPTS[i % len(PROMPTS)], i) for i in range(30)]


def engine_of(
    policy: CausalPolicy,
    max_context_tokens: int = MAX_CONTEXT_TOKENS,
    cache_capacity: int = MAX_CONTEXT_TOKENS,
    **stop_conditions: Any,
) -> LocalEngine:
    """A new engine with an empty prefix cache."""
    return LocalEngine(
        policy.evaluator.backend,
        policy.lm_head,
        policy.chat_tokenizer.tokenizer,
        replace(STOP_CONDITIONS, **stop_conditions),
        MemoryLimits(max_context_tokens),
        PrefixCache(cache_capacity),
    )


def assert_same_replies(
    actual: Sequence[Reply], expected: Sequence[Reply], tolerance: float = 5e-5
) -> None:
    """Equal tokens and finish reasons, close log-probabilities."""
    for reply, other in zip(actual, expected, strict=True):
        assert (reply.tokens, reply.finish_reason) == (other.tokens, other.finish_reason)
        logp = [torch.tensor(x.logp) for x in (reply, other)]
        torch.testing.assert_close(*logp, rtol=0, atol=tolerance)


def generate_separately(
    policy: CausalPolicy, requests: Sequence[Request], **stop_conditions: Any
) -> list[Reply]:
    """The replies of new engines, each of which gets a single request."""
    return [
        generate_all(engine_of(policy, **stop_conditions), [request])[0] for request in requests
    ]


@torch.no_grad()
def reference_logp(model: Any, request: Request, reply: Reply) -> Tensor:
    """Log-probabilities of a reply by the model's own attention to the unpacked row."""
    logp = model(torch.tensor([[*request.tokens, *reply.tokens]])).logits[0].float().log_softmax(-1)
    tokens = torch.tensor(reply.tokens, dtype=torch.long)
    return logp[len(request.tokens) - 1 : -1].gather(1, tokens[:, None])[:, 0]


def assert_reference_logp(
    policy: CausalPolicy,
    requests: Sequence[Request],
    replies: Sequence[Reply],
    tolerance: float = 2e-5,
) -> None:
    """The log-probabilities of the replies are those of the model's own attention."""
    assert any(reply.tokens for reply in replies)
    with tiny_lm.dense_attention(policy) as model:
        for request, reply in zip(requests, replies, strict=True):
            logp = reference_logp(model, request, reply)
            torch.testing.assert_close(torch.tensor(reply.logp), logp, rtol=0, atol=tolerance)


@dataclass(frozen=True)
class ModelCall:
    """One prefill or decode step of a backend."""

    num_tokens: int
    num_generated: tuple[int, ...] = ()  # of each row of a decode step, before it
    prefix_tokens: int = 0  # of a decode step

    @property
    def is_prefill(self) -> bool:
        return not self.num_generated


@contextmanager
def record_model_calls(policy: CausalPolicy) -> Generator[list[ModelCall]]:
    """Records the prefills and decode steps of the policy's model."""
    calls: list[ModelCall] = []

    def recording(method: Any) -> Any:
        def wrapper(
            backend: Any, token: Tensor, position: Tensor, layout: Any, *args: Any
        ) -> Tensor:
            if backend.model is policy.hf_model:
                state = layout if isinstance(layout, DecodeState) else None
                prefix_tokens = sum(map(len, state.prefix_slots)) if state else 0
                num_generated = tuple(state.num_generated.tolist()) if state else ()
                calls.append(ModelCall(token.numel(), num_generated, prefix_tokens))
            return method(backend, token, position, layout, *args)

        return wrapper

    with pytest.MonkeyPatch.context() as patch:
        for name in ("prefill", "decode"):
            backend_type: Any = type(policy.evaluator.backend)
            patch.setattr(backend_type, name, recording(getattr(backend_type, name)))
        yield calls
