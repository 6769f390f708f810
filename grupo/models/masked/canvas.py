"""Answers on canvases: the masks that an answer is written over, and rows of such answers.

A canvas begins where the world has spoken and has as many places as an answer may have tokens. An
answer that was cut goes on in the canvas it was begun in; one that has filled it begins the next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from grupo.core.rng import derive
from grupo.core.types import Rollout
from grupo.inference.base import Request


@dataclass(frozen=True)
class Asked(Request):
    """A request whose canvas was begun behind so many tokens."""

    begun: int = 0


def begun_by(request: Request) -> int:
    """How many tokens stand before the canvas that is written on; a plain request begins one."""
    return request.begun if isinstance(request, Asked) else len(request.tokens)


@dataclass(frozen=True)
class Size:
    """How many places a canvas has, and how many tokens the model reads."""

    limit: int
    context: int

    def end(self, begun: int, at: int) -> int:
        """Where the canvas ends that the place `at` is on.

        >>> Size(4, 99).end(10, 12), Size(4, 99).end(10, 14), Size(4, 13).end(10, 12)
        (14, 18, 13)
        """
        return min(begun + self.limit * (1 + (at - begun) // self.limit), self.context)

    def room(self, request: Request) -> int:
        """How many tokens an answer may have: it stays on its canvas."""
        at = len(request.tokens)
        return min(request.limit, self.end(begun_by(request), at) - at)


@dataclass(frozen=True)
class Span:
    """An answer in its row: where it is, where its canvas ends, the stream of its masks."""

    begin: int
    over: int
    canvas: int
    stream: int


Row = tuple[Sequence[int], Sequence[Span]]  # tokens, and the answers among them


def begun(rollout: Rollout) -> int:
    """How many tokens stand before the canvas that the last answer is on."""
    at = last = 0
    for _, action in rollout.turns:
        at += len(action.seen)
        last = at if action.seen else last
        at += len(action.parts)
    return last


def row_of(rollout: Rollout, size: Size) -> Row:
    """A rollout of one context as tokens and answers."""
    tokens, spans, start = list[int](), list[Span](), 0
    for _, action in rollout.turns:
        tokens += action.seen
        begin, start = len(tokens), len(tokens) if action.seen else start
        tokens += action.parts
        spans.append(span(size, start, begin, len(tokens), action.stream))
    return tokens, spans


def span(size: Size, start: int, begin: int, over: int, stream: int) -> Span:
    """An answer on the canvas begun at `start`; what was recited may go beyond its canvas."""
    return Span(begin, over, max(size.end(start, begin), over), derive(stream, "masks"))


def laid_out(rows: Sequence[Row]) -> Mapping[str, Tensor]:
    """Rows as tensors (N, L), L the widest canvas: `token`, and of each place the `begin`, `over`,
    `canvas` and `stream` of its answer; `start` (N,) is where a row's first answer begins."""
    width = max((s.canvas for _, spans in rows for s in spans), default=0)
    width = max([width, *(len(tokens) for tokens, _ in rows)])
    token = torch.zeros(len(rows), width, dtype=torch.long)
    of = {name: torch.zeros_like(token) for name in ("begin", "over", "canvas", "stream")}
    for i, (tokens, spans) in enumerate(rows):
        token[i, : len(tokens)] = torch.tensor(tokens, dtype=torch.long)
        for one in spans:
            for name, x in of.items():
                x[i, one.begin : one.over] = getattr(one, name)
    start = [spans[0].begin if spans else 0 for _, spans in rows]
    return {"token": token, "start": torch.tensor(start, dtype=torch.long), **of}
