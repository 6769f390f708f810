"""Where answers end."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grupo.inference.base import Bounds, Reply, Request


@dataclass(frozen=True)
class Ending:
    """Tells by its bounds whether an answer is over, and why."""

    bounds: Bounds
    tokenizer: PreTrainedTokenizerBase

    def by_token(self, token: Int[Tensor, "R"]) -> Bool[Tensor, "R"]:
        """Does the newest token end an answer?"""
        ended = [token == end for end in self.bounds.ends or (-1,)]
        return torch.stack(ended).any(0)

    def by_text(self, said: Sequence[Sequence[int]], device: torch.device) -> Bool[Tensor, "R"]:
        """Does the newest token complete a stop text?"""
        return torch.tensor(self._stops(said), device=device)

    def cut(self, request: Request, tokens: Sequence[int], logp: Sequence[float]) -> Reply:
        """What is left of what was said beyond its end."""
        room = self.bounds.room(request)
        for n in range(1, min(room, len(tokens)) + 1):
            why = "end" if tokens[n - 1] in self.bounds.ends else ""
            why = why or ("stop" if self._stops([tokens[:n]])[0] else "")
            if why or n == room:
                return Reply(tuple(tokens[:n]), tuple(logp[:n]), why or "length")
        return Reply()

    def _stops(self, said: Sequence[Sequence[int]]) -> list[bool]:
        """Every token before a stop text's last one has at least a byte of it."""
        stop = self.bounds.stop
        if not stop:
            return [False] * len(said)
        tail = max(len(text.encode()) + 8 for text in stop)
        texts = self.tokenizer.batch_decode([list(tokens[-tail:]) for tokens in said])
        return [any(text in newest for text in stop) for newest in texts]
