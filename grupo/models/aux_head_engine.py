"""What helpers say of states while others speak."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from grupo.inference.base import Engine, Reply, Request, in_order
from grupo.models.aux_heads import Helpers
from grupo.models.evaluator import Reader


@dataclass(frozen=True)
class Foreseeing:
    """An engine whose requests may ask helpers instead; `budget` tokens are read at once for them.

    All come in one queue, so that who is answered together does not depend on the clock.
    """

    engine: Engine
    reader: Reader
    helpers: Helpers
    budget: int

    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        asking = [i for i in in_order(requests) if requests[i].helper]
        for i, number in zip(asking, self._numbers([requests[i] for i in asking]), strict=True):
            yield i, Reply(number=number)
        speaking = [i for i, request in enumerate(requests) if not request.helper]
        if speaking:
            for i, reply in self.engine([requests[i] for i in speaking]):
                yield speaking[i], reply

    @torch.no_grad()
    def _numbers(self, asked: Sequence[Request]) -> Sequence[float]:
        if not asked:
            return []
        self.reader.model.eval()
        length = torch.tensor([len(one.tokens) for one in asked])
        rows = [torch.tensor(one.tokens) for one in asked]
        token = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        found = torch.zeros(len(asked))
        for some in self.reader.together(token, length, self.budget):
            found[some] = self._said(
                token[some], length[some], [asked[i].helper for i in some.tolist()]
            )
        return found.tolist()

    def _said(self, token: Tensor, length: Tensor, helpers: Sequence[str]) -> Tensor:
        row = torch.arange(len(token))
        hidden, _ = self.reader.states(token, length, row, length - 1)
        said = {name: self.helpers.say(name, hidden).cpu() for name in dict.fromkeys(helpers)}
        return torch.stack([said[name][i] for i, name in enumerate(helpers)])
