"""Checks whether answers have ended."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grupo.inference.base import Reply, Request, StopConditions


@dataclass(frozen=True)
class StopChecker:
    """Applies stop conditions to generated tokens.

    Args:
        stop_conditions: the conditions.
        tokenizer: decodes tokens in the search for stop strings.
    """

    stop_conditions: StopConditions
    tokenizer: PreTrainedTokenizerBase

    def finish_reasons(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Why each row ends with its newest token, as in a `Reply`; "" if it does not end."""
        eos = self.stop_conditions.eos_token_ids
        pairs = zip(rows, self._has_stop_string(rows), strict=True)
        return ["end" if row[-1] in eos else "stop" * stopped for row, stopped in pairs]

    def by_token(self, token: Int[Tensor, "R"]) -> Bool[Tensor, "R"]:
        """Whether each row's newest token is a stop token."""
        ended = [token == end for end in self.stop_conditions.eos_token_ids or (-1,)]
        return torch.stack(ended).any(0)

    def by_text(self, rows: Sequence[Sequence[int]], device: torch.device) -> Bool[Tensor, "R"]:
        """Whether the text of each row contains a stop string, which its newest token completes."""
        return torch.tensor(self._has_stop_string(rows), device=device)

    def truncate(self, request: Request, tokens: Sequence[int], logp: Sequence[float]) -> Reply:
        """The reply without the tokens that were generated after its end."""
        limit = self.stop_conditions.remaining_tokens(request)
        for n in range(1, min(limit, len(tokens)) + 1):
            reason = "end" if tokens[n - 1] in self.stop_conditions.eos_token_ids else ""
            reason = reason or ("stop" if self._has_stop_string([tokens[:n]])[0] else "")
            if reason or n == limit:
                return Reply(tuple(tokens[:n]), tuple(logp[:n]), reason or "length")
        return Reply()

    def stop_string_end(self, tokens: Sequence[int], begin: int) -> int | None:
        """Number of tokens up to the end of a stop string that began before position `begin`.

        None if no such string ends after it.
        """
        ends = range(begin + 1, min(len(tokens), begin + self._stop_string_tokens) + 1)
        stopped = self._has_stop_string([tokens[:end] for end in ends]) if ends else []
        return next((end for end, has_stop in zip(ends, stopped, strict=True) if has_stop), None)

    @property
    def _stop_string_tokens(self) -> int:
        """The most tokens in which a stop string may end: each adds a byte to it at least."""
        return max(
            (len(text.encode()) + 8 for text in self.stop_conditions.stop_strings), default=0
        )

    def _has_stop_string(self, rows: Sequence[Sequence[int]]) -> list[bool]:
        stop_strings = self.stop_conditions.stop_strings
        if not stop_strings:
            return [False] * len(rows)
        tail = self._stop_string_tokens
        texts = self.tokenizer.batch_decode([list(tokens[-tail:]) for tokens in rows])
        return [any(stop in text for stop in stop_strings) for text in texts]
