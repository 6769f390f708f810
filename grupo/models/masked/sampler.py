"""Generation by unmasking: block by block, with many rows at once.

The random number of a token depends on its answer's stream and its position only: neither on the
order of unmasking nor on the other rows of a batch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from grupo.inference.base import Reply, Request, batchable_groups, check_generate_only
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.masked.canvas import CanvasSize, make_span, pad_rows, request_canvas_start
from grupo.models.masked.denoiser import Denoiser
from grupo.models.masked.logp_estimators import LogpEstimator
from grupo.models.masked.unmask_order import UnmaskingOrder
from grupo.models.token_statistics import token_signals
from grupo.util.rng import uniform


@dataclass(frozen=True)
class UnmaskingSampler:
    """Engine that generates with a denoiser.

    An answer ends with the block that contains an end token or a stop string. Its log-probabilities
    are those of `logp_estimator`, which training uses too.

    Args:
        denoiser: predicts masked tokens.
        chat_tokenizer: end tokens and stop strings.
        order: order of unmasking.
        logp_estimator: estimator of the log-probabilities.
        canvas_size: positions of a canvas.
        tokens_per_microbatch: tokens evaluated at once.
    """

    denoiser: Denoiser
    chat_tokenizer: ChatTokenizer
    order: UnmaskingOrder
    logp_estimator: LogpEstimator
    canvas_size: CanvasSize
    tokens_per_microbatch: int

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Replies with the indices of their requests; empty where no room for an answer is left."""
        check_generate_only(requests, "a masked diffusion model")
        has_room = [self.canvas_size.remaining_tokens(request) > 0 for request in requests]
        yield from ((i, Reply()) for i in range(len(requests)) if not has_room[i])
        for group in batchable_groups(requests):
            pending = [i for i in group if has_room[i]]
            pending.sort(key=lambda i: len(requests[i].tokens))
            while pending:
                width = len(requests[pending[-1]].tokens) + self.canvas_size.length
                take = max(1, self.tokens_per_microbatch // width)
                batch = pending[:take]
                pending = pending[take:]
                replies = self._answer([requests[i] for i in batch])
                yield from zip(batch, replies, strict=True)

    def _answer(self, requests: Sequence[Request]) -> list[Reply]:
        state = _UnmaskingState(self, requests)
        while len(active := state.is_active.nonzero()[:, 0]):
            state.unmask_step(active)
        replies = state.replies()
        if self.logp_estimator.is_exact:
            return replies
        return self._with_estimated_logp(requests, replies)

    def _with_estimated_logp(
        self, requests: Sequence[Request], replies: Sequence[Reply]
    ) -> list[Reply]:
        """The replies with log-probabilities of the estimator."""
        rows = []
        for request, reply in zip(requests, replies, strict=True):
            canvas_start = request_canvas_start(request)
            begin = len(request.tokens)
            end = begin + len(reply.tokens)
            span = make_span(self.canvas_size, canvas_start, begin, end, request.rng_key)
            rows.append(((*request.tokens, *reply.tokens), [span]))
        inputs = pad_rows(rows)
        row, position = (inputs["end"] > 0).nonzero(as_tuple=True)
        views = self.logp_estimator(inputs, row, position, self.denoiser.mask_token)
        token = inputs["token"][row, position]
        distributions, _ = self.denoiser.distributions(
            views, token, requests[0].sampling, self.tokens_per_microbatch
        )
        logp = views.average_views("logp", token_signals(distributions)["logp"]).cpu()
        return [
            Reply(reply.tokens, tuple(logp[row == i].tolist()), reply.finish_reason)
            for i, reply in enumerate(replies)
        ]


class _UnmaskingState:
    """Rows that are unmasked together."""

    def __init__(self, engine: UnmaskingSampler, requests: Sequence[Request]) -> None:
        self.engine = engine
        self.requests = requests
        device = engine.denoiser.model.device
        size = engine.canvas_size
        self.begin = torch.tensor([len(request.tokens) for request in requests])
        self.canvas_end = torch.tensor(
            [size.canvas_end(request_canvas_start(r), len(r.tokens)) for r in requests]
        )
        self.max_end = self.begin + torch.tensor([size.remaining_tokens(r) for r in requests])
        self.key = torch.tensor([request.rng_key for request in requests], device=device)
        self.block_start = self.begin.clone()  # of the block that is being unmasked
        shape = (len(requests), int(self.canvas_end.max()))
        token = torch.full(shape, engine.denoiser.mask_token)
        for row, request in zip(token, requests, strict=True):
            row[: len(request.tokens)] = torch.tensor(request.tokens)
        self.token = token.to(device)
        self.logp = torch.zeros(shape, device=device)
        self.is_masked = torch.arange(shape[1]) >= self.begin[:, None]
        self.is_active = torch.ones(len(requests), dtype=torch.bool)
        self.finish_reason = ["length"] * len(requests)

    @property
    def block_end(self) -> Tensor:
        """End of the block that is being unmasked."""
        return (self.block_start + self.engine.order.block_length).clamp(max=self.max_end)

    def unmask_step(self, active_rows: Tensor) -> None:
        """Unmask `tokens_per_step` positions of every active row, and finish complete blocks."""
        order = self.engine.order
        logits, _ = self.engine.denoiser(self.token[active_rows], self.canvas_end[active_rows])
        masked = self._masked_in_block()[active_rows].to(logits.device)
        score = order(logits).masked_fill(~masked, -torch.inf)
        best = score.topk(min(order.tokens_per_step, score.shape[1]))
        index, rank = (best.values > -torch.inf).nonzero(as_tuple=True)
        position = best.indices[index, rank]
        row = active_rows.to(logits.device)[index]
        noise = uniform(self.key[row], position)
        token, logp = self.requests[0].sampling.sample(logits[index, position], noise)
        self.token[row, position] = token
        self.logp[row, position] = logp
        self.is_masked[row.cpu(), position.cpu()] = False
        complete = ~self._masked_in_block().any(1)[active_rows]
        for i in active_rows[complete].tolist():
            self._finish_block(i)

    def replies(self) -> list[Reply]:
        """The answer of every row."""
        tokens = self.token.tolist()
        logps = self.logp.tolist()
        spans = [*zip(self.begin.tolist(), self.block_start.tolist(), strict=True)]
        return [
            Reply(tuple(token[begin:end]), tuple(logp[begin:end]), reason)
            for token, logp, (begin, end), reason in zip(
                tokens, logps, spans, self.finish_reason, strict=True
            )
        ]

    def _masked_in_block(self) -> Tensor:
        """Masked positions in the blocks that are being unmasked."""
        position = torch.arange(self.is_masked.shape[1])
        in_block = (position >= self.block_start[:, None]) & (position < self.block_end[:, None])
        return self.is_masked & in_block

    def _finish_block(self, row: int) -> None:
        """Begin the next block of a row, unless its answer has ended."""
        tokenizer = self.engine.chat_tokenizer
        request = self.requests[row]
        self.block_start[row] = self.block_end[row]
        tokens = self.token[row, self.begin[row] : self.block_start[row]].tolist()
        stop_strings = (*tokenizer.stop_strings, *request.stop_strings)
        if set(tokens).intersection(tokenizer.eos_token_ids):
            self.finish_reason[row] = "end"
        elif any(stop in tokenizer.decode(tokens) for stop in stop_strings):
            self.finish_reason[row] = "stop"
        elif self.block_start[row] < self.max_end[row]:
            return
        self.is_active[row] = False
