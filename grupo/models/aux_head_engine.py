"""Inference engine that also answers requests for predictions of auxiliary heads."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grupo.inference.base import (
    ContextReader,
    ContextStates,
    Engine,
    Reply,
    Request,
    canonical_order,
)
from grupo.models.aux_heads import AuxHeads
from grupo.models.evaluator import Evaluator
from grupo.models.prompt_logprobs import read_whole_contexts
from grupo.util.errors import ConfigError, suggest


@dataclass(frozen=True)
class AuxHeadEngine:
    """Predict auxiliary heads for requests with `aux_head`; generate for all others.

    Both kinds share one queue, so that batch composition does not depend on timing. Heads of the
    policy's own hidden states use the caches of the engine, if it has some.

    Args:
        engine: generates answers.
        evaluator: computes hidden states for the heads.
        aux_heads: heads of the policy.
        tokens_per_microbatch: tokens that the evaluator takes at once.
    """

    engine: Engine
    evaluator: Evaluator
    aux_heads: AuxHeads
    tokens_per_microbatch: int

    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        predict = [i for i in canonical_order(requests) if requests[i].aux_head]
        replies = self._predict([requests[i] for i in predict])
        yield from zip(predict, replies, strict=True)
        generate = [i for i, request in enumerate(requests) if not request.aux_head]
        if generate:
            for i, reply in self.engine([requests[i] for i in generate]):
                yield generate[i], reply

    @torch.no_grad()
    def _predict(self, requests: Sequence[Request]) -> Sequence[Reply]:
        self._check_names({request.aux_head for request in requests})
        replies = [Reply()] * len(requests)
        models = [self.aux_heads.models.get(request.aux_head) for request in requests]
        for model in dict.fromkeys(models):
            rows = [i for i, other in enumerate(models) if other is model]
            contexts = [requests[i].tokens for i in rows]
            hidden, num_read = self._read(model, contexts)
            names = dict.fromkeys(requests[i].aux_head for i in rows)
            values = {name: self.aux_heads.predict(name, hidden).tolist() for name in names}
            for place, i in enumerate(rows):
                value = values[requests[i].aux_head][place]
                cached = len(contexts[place]) - num_read[place]
                replies[i] = Reply(head_value=value, num_cached=cached)
        return replies

    def _check_names(self, names: Collection[str]) -> None:
        known = self.aux_heads.names
        for name in sorted(set(names) - known):
            allowed = suggest(name, known) if known else "Allowed: none, because it has no heads."
            raise ConfigError(f"head: {name!r} is no auxiliary head of the policy. {allowed}")

    def _read(self, model: Any, contexts: Sequence[tuple[int, ...]]) -> ContextStates:
        """The states of contexts that a head's own model computes; None stands for the policy."""
        if model is None and isinstance(self.engine, ContextReader):
            return self.engine.read_contexts(contexts)
        evaluator = model.evaluator if model else self.evaluator
        return read_whole_contexts(evaluator, contexts, self.tokens_per_microbatch)
