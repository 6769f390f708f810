"""Sampling by unmasking: block after block, rows side by side.

The number that a token is drawn with belongs to its answer's stream and its place: it depends
neither on the order of unmasking nor on the row's neighbours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from grupo.core.rng import uniform
from grupo.inference.base import Reply, Request, batchable_groups, check_generate_only
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.masked.canvas import CanvasSize, make_span, pad_rows, request_canvas_start
from grupo.models.masked.denoiser import Denoiser
from grupo.models.masked.logp_estimators import LogpEstimator
from grupo.models.masked.unmask_order import UnmaskingOrder
from grupo.models.token_statistics import token_signals


@dataclass(frozen=True)
class UnmaskingSampler:
    """A denoiser that answers requests.

    An answer is made of whole blocks: it is over with the block that holds an end or a stop. Its
    log-probabilities are those by which it will be learned, under the estimate.
    """

    denoiser: Denoiser
    chat_tokenizer: ChatTokenizer
    order: UnmaskingOrder
    logp_estimator: LogpEstimator
    canvas_size: CanvasSize
    tokens_per_microbatch: int

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer every request; where no room is left, with nothing."""
        check_generate_only(requests, "a masked diffusion model")
        yield from (
            (i, Reply())
            for i, asked in enumerate(requests)
            if self.canvas_size.remaining_tokens(asked) <= 0
        )
        for some in batchable_groups(requests):
            open_ = [i for i in some if self.canvas_size.remaining_tokens(requests[i]) > 0]
            open_.sort(key=lambda i: len(requests[i].tokens))
            while open_:
                width = len(requests[open_[-1]].tokens) + self.canvas_size.length
                now = open_[: max(1, self.tokens_per_microbatch // width)]
                open_ = open_[len(now) :]
                replies = self._answer([requests[i] for i in now])
                yield from zip(now, replies, strict=True)

    def _answer(self, requests: Sequence[Request]) -> list[Reply]:
        rows = _UnmaskingState(self, requests)
        while len(live := rows.is_active.nonzero()[:, 0]):
            rows.unmask_step(live)
        replies = rows.replies()
        return (
            replies
            if self.logp_estimator.is_exact
            else self._with_estimated_logp(requests, replies)
        )

    def _with_estimated_logp(
        self, requests: Sequence[Request], replies: Sequence[Reply]
    ) -> list[Reply]:
        """The replies with the log-probabilities that they are learned by."""
        rows = []
        for one, reply in zip(requests, replies, strict=True):
            begin, over = len(one.tokens), len(one.tokens) + len(reply.tokens)
            own = make_span(self.canvas_size, request_canvas_start(one), begin, over, one.rng_key)
            rows.append(((*one.tokens, *reply.tokens), [own]))
        inputs = pad_rows(rows)
        row, place = (inputs["over"] > 0).nonzero(as_tuple=True)
        looks = self.logp_estimator(inputs, row, place, self.denoiser.mask_token)
        token = inputs["token"][row, place]
        spoken, _ = self.denoiser.distributions(
            looks, token, requests[0].sampling, self.tokens_per_microbatch
        )
        logp = looks.average_views("logp", token_signals(spoken)["logp"]).cpu()
        each = [tuple(logp[row == i].tolist()) for i in range(len(rows))]
        return [
            Reply(r.tokens, mine, r.finish_reason) for r, mine in zip(replies, each, strict=True)
        ]


class _UnmaskingState:
    """Rows being unmasked together."""

    def __init__(self, engine: UnmaskingSampler, requests: Sequence[Request]) -> None:
        self.engine, self.requests = engine, requests
        device, size = engine.denoiser.model.device, engine.canvas_size
        self.begin = torch.tensor([len(one.tokens) for one in requests])
        self.canvas_end = torch.tensor(
            [size.canvas_end(request_canvas_start(one), len(one.tokens)) for one in requests]
        )
        self.max_end = self.begin + torch.tensor([size.remaining_tokens(one) for one in requests])
        self.key = torch.tensor([one.rng_key for one in requests], device=device)
        self.block_start = self.begin.clone()  # where the block begins that is being unmasked
        self.token = torch.full(
            (len(requests), int(self.canvas_end.max())), engine.denoiser.mask_token
        )
        for row, one in zip(self.token, requests, strict=True):
            row[: len(one.tokens)] = torch.tensor(one.tokens)
        self.token, self.logp = self.token.to(device), torch.zeros(self.token.shape, device=device)
        self.is_masked = torch.arange(self.token.shape[1]) >= self.begin[:, None]
        self.is_active = torch.ones(len(requests), dtype=torch.bool)
        self.finish_reason = ["length"] * len(requests)

    @property
    def block_end(self) -> Tensor:
        """Where the block ends that is being unmasked."""
        return (self.block_start + self.engine.order.block_length).clamp(max=self.max_end)

    def unmask_step(self, active_rows: Tensor) -> None:
        """Unmask some places of every row; go on to the next block where one is done."""
        engine = self.engine
        logits, _ = engine.denoiser(self.token[active_rows], self.canvas_end[active_rows])
        block = self._masked_in_block()[active_rows].to(logits.device)
        score = engine.order(logits).masked_fill(~block, -torch.inf)
        best = score.topk(min(engine.order.tokens_per_step, score.shape[1]))
        which, number = (best.values > -torch.inf).nonzero(as_tuple=True)
        place, row = best.indices[which, number], active_rows.to(logits.device)[which]
        lot = uniform(self.key[row], place)
        token, logp = self.requests[0].sampling.sample(logits[which, place], lot)
        self.token[row, place], self.logp[row, place] = token, logp
        self.is_masked[row.cpu(), place.cpu()] = False
        for i in active_rows[~self._masked_in_block().any(1)[active_rows]].tolist():
            self._finish_block(i)

    def replies(self) -> list[Reply]:
        """What every row says."""
        rows = zip(self.token.tolist(), self.logp.tolist(), strict=True)
        spans = list(zip(self.begin.tolist(), self.block_start.tolist(), strict=True))
        return [
            Reply(tuple(token[a:b]), tuple(logp[a:b]), why)
            for (token, logp), (a, b), why in zip(rows, spans, self.finish_reason, strict=True)
        ]

    def _masked_in_block(self) -> Tensor:
        """What is masked in the blocks being unmasked."""
        place = torch.arange(self.is_masked.shape[1])
        return (
            self.is_masked
            & (place >= self.block_start[:, None])
            & (place < self.block_end[:, None])
        )

    def _finish_block(self, row: int) -> None:
        """A block is: the answer is over, or goes on with the next."""
        language, one = self.engine.chat_tokenizer, self.requests[row]
        self.block_start[row] = self.block_end[row]
        said = self.token[row, self.begin[row] : self.block_start[row]].tolist()
        if set(said).intersection(language.eos_token_ids):
            self.finish_reason[row] = "end"
        elif any(
            stop in language.decode(said) for stop in (*language.stop_strings, *one.stop_strings)
        ):
            self.finish_reason[row] = "stop"
        elif self.block_start[row] < self.max_end[row]:
            return
        self.is_active[row] = False
