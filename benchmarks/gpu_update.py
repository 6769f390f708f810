"""An update on a GPU, forward and backward: FLOP a second of every way, and its memory."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from benchmarks.gpu_machine import (
    DEVICE,
    median_time,
    parameter_counts,
    peak_memory_gib,
    random_model,
    reset_peak_memory,
    time_once,
)
from benchmarks.gpu_forward import ForwardFunction, ForwardResult, PaddedRows
from benchmarks.gpu_sizes import ModelShape
from grupo.inference.sampling_params import Sampling
from grupo.kernels.lm_head import LMHead
from grupo.models.token_statistics import LOGITS_PER_CHUNK, TokenDistributions, token_signals

Measurements = dict[str, Any]
LogpFunction = Callable[[Tensor, Tensor, LMHead], Tensor]


def chunked_logp(chunk: int = LOGITS_PER_CHUNK) -> LogpFunction:
    """As grupo's policies do it, so many logits at a time."""

    def said(hidden: Tensor, token: Tensor, head: LMHead) -> Tensor:
        return token_signals(
            TokenDistributions(hidden, token, head, Sampling()), logits_per_chunk=chunk
        )["logp"]

    return said


def full_logp(hidden: Tensor, token: Tensor, head: LMHead) -> Tensor:
    """All logits of all tokens, then `log_softmax`."""
    return head(hidden).float().log_softmax(-1).gather(1, token[:, None])[:, 0]


LOGP_FUNCTIONS = {"chunks": chunked_logp(), "at once": full_logp}


@contextmanager
def gradient_checkpointing(model: PreTrainedModel) -> Iterator[None]:
    """Keep one activation a layer and work out the rest again, as grupo's policies do."""
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of its next name
        model.train().gradient_checkpointing_enable({"use_reentrant": False})
        try:
            yield
        finally:
            model.eval().gradient_checkpointing_disable()


@contextmanager
def no_checkpointing(model: PreTrainedModel) -> Iterator[None]:
    """Keep what the gradient needs."""
    yield


CHECKPOINTING = {"no": no_checkpointing, "yes": gradient_checkpointing}


@dataclass(frozen=True)
class UpdateBenchmark:
    """One way of going forward and backward over some rows."""

    forward: ForwardFunction
    logp: LogpFunction
    checkpointing: str
    rows: Callable[[], PaddedRows]

    def measure(self, shape: ModelShape, matmul_flops: float) -> Measurements:
        """A row; `product`: FLOP a second of a product of matrices."""
        model, rows = random_model(shape), self.rows()
        done: list[Measurements] = []
        try:
            with CHECKPOINTING[self.checkpointing](model):
                reset_peak_memory()
                first = time_once(lambda: done.append(self._step(model, rows)))
                seconds = median_time(lambda: done.append(self._step(model, rows)))
            gradient = float(
                torch.stack([p.grad.norm() for p in _trained_parameters(model)]).norm()
            )
        finally:
            model.zero_grad(set_to_none=True)
        read, logp = done[-1]["read"], float(done[-1]["logp"])
        rate = update_flop(model, shape, read, len(rows.row)) / seconds
        counts = {
            "tokens read": read.tokens,
            "laying out, s": read.packing_seconds,
            "first time, s": first,
        }
        alike = {"mean logp": logp, "gradient": gradient}  # of all ways of reading the same rows
        return _result_row(rate, matmul_flops, seconds, len(rows.row)) | counts | alike

    def _step(self, model: PreTrainedModel, rows: PaddedRows) -> Measurements:
        model.zero_grad(set_to_none=True)
        read = self.forward(model, rows)
        logp = self.logp(
            read.hidden, rows.answer_tokens, LMHead(model.get_output_embeddings())
        ).mean()
        logp.backward()
        return {"logp": logp.detach(), "read": replace(read, hidden=rows.token)}  # frees states


def _trained_parameters(model: PreTrainedModel) -> list[Any]:
    return [p for p in model.parameters() if p.grad is not None]


def update_flop(
    model: PreTrainedModel, shape: ModelShape, forward_result: ForwardResult, answer_tokens: int
) -> int:
    """6 for each parameter and token, the head's where answers were drawn; and attention's.

    What checkpointing works out again is not counted.
    """
    body, head = parameter_counts(model)
    pair = 12 * shape.layers * shape.heads * shape.head_dim
    return (
        6 * body * forward_result.tokens
        + 6 * head * answer_tokens
        + pair * forward_result.attention_pairs
    )


def _result_row(rate: float, product: float, seconds: float, said: int) -> Measurements:
    return {
        "answer tokens/s": said / seconds,
        "s": seconds,
        "TFLOP/s": rate / 1e12,
        "of product": rate / product,
        "peak GiB": peak_memory_gib(),
    }


def measure_head(
    shape: ModelShape, count: int, logp: LogpFunction, matmul_flops: float
) -> Measurements:
    """The head and what follows alone, for so many tokens, forward and backward: a row."""
    kind: Measurements = {"device": DEVICE, "dtype": torch.bfloat16}
    head = nn.Linear(shape.hidden_size, shape.vocab_size, bias=False, **kind)
    hidden = torch.randn(count, shape.hidden_size, requires_grad=True, **kind)
    token = torch.randint(shape.vocab_size, (count,), device=DEVICE)

    def step() -> None:
        head.weight.grad = hidden.grad = None
        logp(hidden, token, LMHead(head)).mean().backward()

    reset_peak_memory()
    step()
    seconds = median_time(step)
    return _result_row(6 * head.weight.numel() * count / seconds, matmul_flops, seconds, count)
