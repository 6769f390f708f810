"""Where answers end."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grupo.inference.base import Reply, Request, StopConditions


@dataclass(frozen=True)
class StopChecker:
    """Tells by its bounds whether an answer is over, and why."""

    stop_conditions: StopConditions
    tokenizer: PreTrainedTokenizerBase

    def by_token(self, token: Int[Tensor, "R"]) -> Bool[Tensor, "R"]:
        """Does the newest token end an answer?"""
        ended = [token == end for end in self.stop_conditions.eos_token_ids or (-1,)]
        return torch.stack(ended).any(0)

    def by_text(self, rows: Sequence[Sequence[int]], device: torch.device) -> Bool[Tensor, "R"]:
        """Does the newest token complete a stop text?"""
        return torch.tensor(self._has_stop_string(rows), device=device)

    def truncate(self, request: Request, tokens: Sequence[int], logp: Sequence[float]) -> Reply:
        """What is left of what was said beyond its end."""
        room = self.stop_conditions.remaining_tokens(request)
        for n in range(1, min(room, len(tokens)) + 1):
            why = "end" if tokens[n - 1] in self.stop_conditions.eos_token_ids else ""
            why = why or ("stop" if self._has_stop_string([tokens[:n]])[0] else "")
            if why or n == room:
                return Reply(tuple(tokens[:n]), tuple(logp[:n]), why or "length")
        return Reply()

    def _has_stop_string(self, rows: Sequence[Sequence[int]]) -> list[bool]:
        """Every token before a stop text's last one has at least a byte of it."""
        stop = self.stop_conditions.stop_strings
        if not stop:
            return [False] * len(rows)
        tail = max(len(text.encode()) + 8 for text in stop)
        texts = self.tokenizer.batch_decode([list(tokens[-tail:]) for tokens in rows])
        return [any(text in newest for text in stop) for newest in texts]
