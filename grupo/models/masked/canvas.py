"""Answers on canvases: the masks that an answer is written over, and rows of such answers.

A canvas begins where the world has spoken and has as many places as an answer may have tokens. An
answer that was cut goes on in the canvas it was begun in; one that has filled it begins the next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from grupo.core.rng import derive_key
from grupo.core.types import Rollout
from grupo.inference.base import Request


@dataclass(frozen=True)
class CanvasRequest(Request):
    """A request whose canvas was begun behind so many tokens."""

    canvas_start: int = 0


def request_canvas_start(request: Request) -> int:
    """How many tokens stand before the canvas that is written on; a plain request begins one."""
    return request.canvas_start if isinstance(request, CanvasRequest) else len(request.tokens)


@dataclass(frozen=True)
class CanvasSize:
    """How many places a canvas has, and how many tokens the model reads."""

    length: int
    context_length: int

    def canvas_end(self, canvas_start: int, position: int) -> int:
        """Where the canvas ends that the place `at` is on.

        >>> CanvasSize(4, 99).end(10, 12), CanvasSize(4, 99).end(10, 14), CanvasSize(4, 13).end(10, 12)
        (14, 18, 13)
        """
        return min(
            canvas_start + self.length * (1 + (position - canvas_start) // self.length),
            self.context_length,
        )

    def remaining_tokens(self, request: Request) -> int:
        """How many tokens an answer may have: it stays on its canvas."""
        at = len(request.tokens)
        return min(request.max_new_tokens, self.canvas_end(request_canvas_start(request), at) - at)


@dataclass(frozen=True)
class Span:
    """An answer in its row: where it is, where its canvas ends, the stream of its masks."""

    begin: int
    end: int
    canvas_end: int
    mask_key: int


CanvasRow = tuple[Sequence[int], Sequence[Span]]  # tokens, and the answers among them


def rollout_canvas_start(rollout: Rollout) -> int:
    """How many tokens stand before the canvas that the last answer is on."""
    at = last = 0
    for _, action in rollout.turns:
        at += len(action.observation)
        last = at if action.observation else last
        at += len(action.items)
    return last


def encode_row(rollout: Rollout, canvas_size: CanvasSize) -> CanvasRow:
    """A rollout of one context as tokens and answers."""
    tokens, spans, start = list[int](), list[Span](), 0
    for _, action in rollout.turns:
        tokens += action.observation
        begin, start = len(tokens), len(tokens) if action.observation else start
        tokens += action.items
        spans.append(make_span(canvas_size, start, begin, len(tokens), action.rng_key))
    return tokens, spans


def make_span(
    canvas_size: CanvasSize, canvas_start: int, begin: int, end: int, rng_key: int
) -> Span:
    """An answer on the canvas begun at `start`; what was recited may go beyond its canvas."""
    return Span(
        begin,
        end,
        max(canvas_size.canvas_end(canvas_start, begin), end),
        derive_key(rng_key, "masks"),
    )


def pad_rows(rows: Sequence[CanvasRow]) -> Mapping[str, Tensor]:
    """Rows as tensors (N, L), L the widest canvas: `token`, and of each place the `begin`, `over`,
    `canvas_end` and `stream` of its answer; `start` (N,) is where a row's first answer begins."""
    width = max((s.canvas_end for _, spans in rows for s in spans), default=0)
    width = max([width, *(len(tokens) for tokens, _ in rows)])
    token = torch.zeros(len(rows), width, dtype=torch.long)
    of = {name: torch.zeros_like(token) for name in ("begin", "over", "canvas", "stream")}
    for i, (tokens, spans) in enumerate(rows):
        token[i, : len(tokens)] = torch.tensor(tokens, dtype=torch.long)
        for one in spans:
            for name, x in of.items():
                x[i, one.begin : one.end] = getattr(one, name)
    start = [spans[0].begin if spans else 0 for _, spans in rows]
    return {"token": token, "start": torch.tensor(start, dtype=torch.long), **of}
