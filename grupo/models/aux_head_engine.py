"""What helpers say of states while others speak."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from grupo.inference.base import Engine, Reply, Request, canonical_order
from grupo.models.aux_heads import AuxHeads
from grupo.models.evaluator import Evaluator


@dataclass(frozen=True)
class AuxHeadEngine:
    """An engine whose requests may ask helpers instead; `budget` tokens are read at once for them.

    All come in one queue, so that who is answered together does not depend on the clock.
    """

    engine: Engine
    evaluator: Evaluator
    aux_heads: AuxHeads
    tokens_per_microbatch: int

    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        asking = [i for i in canonical_order(requests) if requests[i].aux_head]
        for i, number in zip(asking, self._predict([requests[i] for i in asking]), strict=True):
            yield i, Reply(head_value=number)
        speaking = [i for i, request in enumerate(requests) if not request.aux_head]
        if speaking:
            for i, reply in self.engine([requests[i] for i in speaking]):
                yield speaking[i], reply

    @torch.no_grad()
    def _predict(self, requests: Sequence[Request]) -> Sequence[float]:
        if not requests:
            return []
        self.evaluator.model.eval()
        length = torch.tensor([len(one.tokens) for one in requests])
        rows = [torch.tensor(one.tokens) for one in requests]
        token = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        found = torch.zeros(len(requests))
        for some in self.evaluator.microbatches(token, length, self.tokens_per_microbatch):
            found[some] = self._predict_batch(
                token[some], length[some], [requests[i].aux_head for i in some.tolist()]
            )
        return found.tolist()

    def _predict_batch(self, token: Tensor, length: Tensor, head_names: Sequence[str]) -> Tensor:
        row = torch.arange(len(token))
        hidden, _ = self.evaluator.hidden_states(token, length, row, length - 1)
        said = {
            name: self.aux_heads.predict(name, hidden).cpu() for name in dict.fromkeys(head_names)
        }
        return torch.stack([said[name][i] for i, name in enumerate(head_names)])
