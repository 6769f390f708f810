"""Inference engine that also answers requests for predictions of auxiliary heads."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from grupo.inference.base import Engine, Reply, Request, canonical_order
from grupo.models.aux_heads import AuxHeads
from grupo.models.evaluator import Evaluator
from grupo.util.errors import ConfigError, suggest


@dataclass(frozen=True)
class AuxHeadEngine:
    """Predict auxiliary heads for requests with `aux_head`; generate for all others.

    Both kinds share one queue, so that batch composition does not depend on timing.

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
        values = self._predict([requests[i] for i in predict])
        for i, value in zip(predict, values, strict=True):
            yield i, Reply(head_value=value)
        generate = [i for i, request in enumerate(requests) if not request.aux_head]
        if generate:
            for i, reply in self.engine([requests[i] for i in generate]):
                yield generate[i], reply

    @torch.no_grad()
    def _predict(self, requests: Sequence[Request]) -> Sequence[float]:
        if not requests:
            return []
        self._check_names({request.aux_head for request in requests})
        self.evaluator.model.eval()
        length = torch.tensor([len(request.tokens) for request in requests])
        rows = [torch.tensor(request.tokens) for request in requests]
        token = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        values = torch.zeros(len(requests), dtype=torch.float64)  # holds every type of a head
        for batch in self.evaluator.microbatches(token, length, self.tokens_per_microbatch):
            head_names = [requests[i].aux_head for i in batch.tolist()]
            values[batch] = self._predict_batch(token[batch], length[batch], head_names).double()
        return values.tolist()

    def _check_names(self, names: Collection[str]) -> None:
        known = self.aux_heads.names
        for name in sorted(set(names) - known):
            allowed = suggest(name, known) if known else "Allowed: none, because it has no heads."
            raise ConfigError(f"head: {name!r} is no auxiliary head of the policy. {allowed}")

    def _predict_batch(self, token: Tensor, length: Tensor, head_names: Sequence[str]) -> Tensor:
        names = dict.fromkeys(head_names)
        values = {name: self._predict_head(name, token, length) for name in names}
        return torch.stack([values[name][i] for i, name in enumerate(head_names)])

    def _predict_head(self, name: str, token: Tensor, length: Tensor) -> Tensor:
        model = self.aux_heads.models.get(name)
        evaluator = model.evaluator if model else self.evaluator
        row = torch.arange(len(token))
        hidden = evaluator.hidden_states(token, length, row, length - 1).values
        return self.aux_heads.predict(name, hidden).cpu()
