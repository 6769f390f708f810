"""Canvases: the mask tokens that an answer replaces, and rows of such answers.

A canvas begins after an observation and has as many positions as an answer may have tokens. An
answer that continues a truncated one stays on its canvas; after a full canvas, the next begins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from grupo.core.types import Rollout
from grupo.inference.base import Request
from grupo.util.rng import derive_key


@dataclass(frozen=True)
class CanvasRequest(Request):
    """A request whose canvas begins after `canvas_start` tokens."""

    canvas_start: int = 0


def request_canvas_start(request: Request) -> int:
    """Number of tokens before a request's canvas; a plain request begins a canvas."""
    return request.canvas_start if isinstance(request, CanvasRequest) else len(request.tokens)


@dataclass(frozen=True)
class CanvasSize:
    """Positions of a canvas, and of the model's context."""

    length: int
    context_length: int

    def canvas_end(self, canvas_start: int, position: int) -> int:
        """End of the canvas that a position belongs to.

        >>> CanvasSize(4, 99).canvas_end(10, 12), CanvasSize(4, 99).canvas_end(10, 14)
        (14, 18)
        >>> CanvasSize(4, 13).canvas_end(10, 12)
        13
        """
        num_canvases = 1 + (position - canvas_start) // self.length
        return min(canvas_start + self.length * num_canvases, self.context_length)

    def remaining_tokens(self, request: Request) -> int:
        """Maximal number of tokens of an answer, which stays on its canvas."""
        start = len(request.tokens)
        canvas_end = self.canvas_end(request_canvas_start(request), start)
        return min(request.max_new_tokens, canvas_end - start)


@dataclass(frozen=True)
class Span:
    """An answer in its row.

    Args:
        begin: its first position.
        end: one after its last position.
        canvas_end: end of its canvas.
        mask_key: key of the random stream of its masks.
    """

    begin: int
    end: int
    canvas_end: int
    mask_key: int


SPAN_FIELDS = tuple(field.name for field in fields(Span))  # keys of `pad_rows`
CanvasRow = tuple[Sequence[int], Sequence[Span]]  # tokens, and the answers among them


def rollout_canvas_start(rollout: Rollout) -> int:
    """Number of tokens before the canvas of the last answer."""
    position = canvas_start = 0
    for _, response in rollout.turns:
        position += len(response.observation)
        if response.observation:
            canvas_start = position
        position += len(response.items)
    return canvas_start


def encode_row(rollout: Rollout, canvas_size: CanvasSize) -> CanvasRow:
    """Tokens and answers of a rollout of one context."""
    tokens = list[int]()
    spans = list[Span]()
    canvas_start = 0
    for _, response in rollout.turns:
        tokens += response.observation
        begin = len(tokens)
        if response.observation:
            canvas_start = begin
        tokens += response.items
        spans.append(make_span(canvas_size, canvas_start, begin, len(tokens), response.rng_key))
    return tokens, spans


def make_span(
    canvas_size: CanvasSize, canvas_start: int, begin: int, end: int, rng_key: int
) -> Span:
    """An answer on the canvas that begins at `canvas_start`; unsampled text may exceed it."""
    canvas_end = max(canvas_size.canvas_end(canvas_start, begin), end)
    return Span(begin, end, canvas_end, derive_key(rng_key, "masks"))


def pad_rows(rows: Sequence[CanvasRow]) -> Mapping[str, Tensor]:
    """Rows as tensors (N, L), where L is the widest row with its canvas.

    `token`, and for each position the fields of its answer's `Span`; `start` (N,) is the position
    of a row's first answer.
    """
    width = max((span.canvas_end for _, spans in rows for span in spans), default=0)
    width = max([width, *(len(tokens) for tokens, _ in rows)])
    token = torch.zeros(len(rows), width, dtype=torch.long)
    span_fields = {name: torch.zeros_like(token) for name in SPAN_FIELDS}
    for i, (tokens, spans) in enumerate(rows):
        token[i, : len(tokens)] = torch.tensor(tokens, dtype=torch.long)
        for span in spans:
            for name, x in span_fields.items():
                x[i, span.begin : span.end] = getattr(span, name)
    start = [spans[0].begin if spans else 0 for _, spans in rows]
    return {"token": token, "start": torch.tensor(start, dtype=torch.long), **span_fields}
