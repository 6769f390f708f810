"""Engines that are asked, and what models read for it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import MistralConfig

from grupo.core.rng import derive_key
from grupo.inference.base import Reply, Request, StopConditions, generate_all
from grupo.inference.local import MAX_CONTEXT_TOKENS, LocalEngine
from grupo.kernels.decode_state import DecodeState
from grupo.kernels.prefix_cache import PrefixCache
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from tests.helpers import tiny_lm
from tests.helpers.recurrent_model import planted
from tests.helpers.tiny_lm import ALPHABET, CONTEXT, ENDS, WIDE

BOUNDS = StopConditions(max_new_tokens=24, eos_token_ids=(0,), context_length=CONTEXT)
TEXTS = ("Hi", "What is 2+2?", "A rather longer question, of words:", "Hi", "Go on")
FAMILIES: dict[str, Any] = {
    **tiny_lm.FAMILIES,
    "mistral": lambda: MistralConfig(**WIDE, **ENDS, sliding_window=4),
}


def policy_of(folder: Path, family: str, **more: Any) -> CausalPolicy:
    """One of a family, which answers with at most 24 tokens."""
    return CausalLM(planted(folder, FAMILIES[family]()), max_new_tokens=24, **more).build()


def ask(text: str, key: int) -> Request:
    return Request(tokens(text), derive_key(0, key))


def tokens(text: str) -> tuple[int, ...]:
    """A token for each letter."""
    return tuple(map(ALPHABET.index, text))


def after(request: Request, reply: Reply, text: str = "", key: int | None = None) -> Request:
    """The request that goes on from a reply, with the same random stream unless told otherwise."""
    key = request.rng_key if key is None else derive_key(0, key)
    return Request((*request.tokens, *reply.tokens, *tokens(text)), key, request.sampling)


MANY = [ask(TEXTS[i % len(TEXTS)], i) for i in range(30)]


def engine(
    policy: CausalPolicy,
    cells: int = MAX_CONTEXT_TOKENS,
    memory: int = MAX_CONTEXT_TOKENS,
    **bounds: Any,
) -> LocalEngine:
    """A new engine, which remembers nothing yet."""
    told = (
        policy.evaluator.body,
        policy.lm_head,
        policy.chat_tokenizer.tokenizer,
        replace(BOUNDS, **bounds),
    )
    return LocalEngine(*told, cells, PrefixCache(memory))


def assert_same(ours: Sequence[Reply], theirs: Sequence[Reply], off: float = 5e-5) -> None:
    """The same words, and as likely."""
    for mine, yours in zip(ours, theirs, strict=True):
        assert (mine.tokens, mine.finish_reason) == (yours.tokens, yours.finish_reason)
        logp = [torch.tensor(reply.logp) for reply in (mine, yours)]
        torch.testing.assert_close(*logp, rtol=0, atol=off)


def alone(policy: CausalPolicy, requests: Sequence[Request], **bounds: Any) -> list[Reply]:
    """The replies of engines that are asked one thing each, and remember nothing."""
    return [generate_all(engine(policy, **bounds), [request])[0] for request in requests]


@torch.no_grad()
def evaluated(model: Any, request: Request, reply: Reply) -> Tensor:
    """Log-probabilities of what was said, by the model's own attention to the row alone."""
    logp = model(torch.tensor([[*request.tokens, *reply.tokens]])).logits[0].float().log_softmax(-1)
    said = torch.tensor(reply.tokens, dtype=torch.long)
    return logp[len(request.tokens) - 1 : -1].gather(1, said[:, None])[:, 0]


def assert_evaluated(
    policy: CausalPolicy, asked: Sequence[Request], said: Sequence[Reply], off: float = 2e-5
) -> None:
    """What was said is as likely as the model's own attention has it."""
    assert any(reply.tokens for reply in said)
    with tiny_lm.dense(policy) as model:
        for request, reply in zip(asked, said, strict=True):
            logp = evaluated(model, request, reply)
            torch.testing.assert_close(torch.tensor(reply.logp), logp, rtol=0, atol=off)


@dataclass(frozen=True)
class Read:
    """What a model was given at once."""

    count: int  # tokens
    said: tuple[int, ...] = ()  # of rows that are being sampled, how much each had said
    held: int = 0  # tokens of what these rows go on from

    @property
    def prompts(self) -> bool:
        """Is it the reading of prompts?"""
        return not self.said


@contextmanager
def watched(policy: CausalPolicy) -> Iterator[list[Read]]:
    """Whatever the policy's model reads, by whichever body."""
    found = list[Read]()

    def watching(read: Any) -> Any:
        def noted(body: Any, token: Tensor, position: Tensor, layout: Any, *more: Any) -> Tensor:
            if body.model is policy.hf_model:
                rows = layout if isinstance(layout, DecodeState) else None
                held = sum(map(len, rows.prefix_slots)) if rows else 0
                said = tuple(rows.num_generated.tolist()) if rows else ()
                found.append(Read(token.numel(), said, held))
            return read(body, token, position, layout, *more)

        return noted

    with pytest.MonkeyPatch.context() as patch:
        for name in ("read", "go_on"):
            kind: Any = type(policy.evaluator.body)
            patch.setattr(kind, name, watching(getattr(kind, name)))
        yield found
