"""An update on a GPU, forward and backward: FLOP/s and memory of every implementation."""

import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from benchmarks.gpu_forward import ForwardFunction, ForwardResult, PaddedRows
from benchmarks.gpu_machine import (
    DEVICE,
    median_time,
    parameter_counts,
    peak_memory_gib,
    random_model,
    reset_peak_memory,
    time_once,
)
from benchmarks.gpu_sizes import ModelShape
from grupo.inference.sampling_params import Sampling
from grupo.kernels.hidden_states import HiddenStates
from grupo.kernels.lm_head import LMHead
from grupo.models.token_statistics import LOGITS_PER_CHUNK, TokenDistributions, token_signals

Measurements = dict[str, Any]
LogpFunction = Callable[[Tensor, Tensor, LMHead], Tensor]


def chunked_logp(chunk: int = LOGITS_PER_CHUNK) -> LogpFunction:
    """Return the log-probabilities of grupo's policies, with `chunk` logits in memory."""

    def logp(hidden: Tensor, token: Tensor, head: LMHead) -> Tensor:
        distributions = TokenDistributions(HiddenStates(hidden), token, head, Sampling())
        return token_signals(distributions, logits_per_chunk=chunk)["logp"]

    return logp


def full_logp(hidden: Tensor, token: Tensor, head: LMHead) -> Tensor:
    """Compute all logits of all tokens, then `log_softmax`."""
    return head(hidden).float().log_softmax(-1).gather(1, token[:, None])[:, 0]


LOGP_FUNCTIONS = {"chunks": chunked_logp(), "full": full_logp}


@contextmanager
def gradient_checkpointing(model: PreTrainedModel) -> Generator[None]:
    """Store one activation per layer and recompute the others, as grupo's policies do."""
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of transformers
        model.train().gradient_checkpointing_enable({"use_reentrant": False})
        try:
            yield
        finally:
            model.eval().gradient_checkpointing_disable()


@contextmanager
def no_checkpointing(model: PreTrainedModel) -> Generator[None]:
    """Store all activations for the backward pass."""
    yield


CHECKPOINTING = {"no": no_checkpointing, "yes": gradient_checkpointing}


@dataclass(frozen=True)
class UpdateBenchmark:
    """Forward and backward pass over a batch.

    Args:
        forward: computes hidden states.
        logp: computes log-probabilities of hidden states.
        checkpointing: a key of `CHECKPOINTING`.
        rows: builds the batch.
    """

    forward: ForwardFunction
    logp: LogpFunction
    checkpointing: str
    rows: Callable[[], PaddedRows]

    def measure(self, shape: ModelShape, matmul_flops: float) -> Measurements:
        """Measure the update; `matmul_flops` is the FLOP/s of a matrix product."""
        model = random_model(shape)
        rows = self.rows()
        steps: list[Measurements] = []
        try:
            with CHECKPOINTING[self.checkpointing](model):
                reset_peak_memory()
                first_seconds = time_once(lambda: steps.append(self._step(model, rows)))
                seconds = median_time(lambda: steps.append(self._step(model, rows)))
            norms = [parameter.grad.norm() for parameter in _trained_parameters(model)]
            gradient = float(torch.stack(norms).norm())
        finally:
            model.zero_grad(set_to_none=True)
        result = steps[-1]["result"]
        flops = update_flop(model, shape, result, len(rows.row)) / seconds
        return _result_row(flops, matmul_flops, seconds, len(rows.row)) | {
            "evaluated tokens": result.tokens,
            "packing, s": result.packing_seconds,
            "first call, s": first_seconds,
            "mean logp": float(steps[-1]["logp"]),  # must agree between forward functions
            "gradient": gradient,  # likewise
        }

    def _step(self, model: PreTrainedModel, rows: PaddedRows) -> Measurements:
        model.zero_grad(set_to_none=True)
        result = self.forward(model, rows)
        head = LMHead(model.get_output_embeddings())
        logp = self.logp(result.hidden, rows.answer_tokens, head).mean()
        logp.backward()
        result = replace(result, hidden=rows.token)  # releases the hidden states
        return {"logp": logp.detach(), "result": result}


def _trained_parameters(model: PreTrainedModel) -> list[Any]:
    return [p for p in model.parameters() if p.grad is not None]


def update_flop(
    model: PreTrainedModel, shape: ModelShape, forward_result: ForwardResult, answer_tokens: int
) -> int:
    """Return the FLOP of an update: 6 per parameter and token, and those of attention.

    The head counts for answer tokens only. Recomputation by checkpointing does not count.
    """
    layer_parameters, head_parameters = parameter_counts(model)
    pair_flop = 12 * shape.layers * shape.heads * shape.head_dim
    return (
        6 * layer_parameters * forward_result.tokens
        + 6 * head_parameters * answer_tokens
        + pair_flop * forward_result.attention_pairs
    )


def _result_row(
    flops: float, matmul_flops: float, seconds: float, answer_tokens: int
) -> Measurements:
    return {
        "answer tokens/s": answer_tokens / seconds,
        "s": seconds,
        "TFLOP/s": flops / 1e12,
        "of matrix product": flops / matmul_flops,
        "peak GiB": peak_memory_gib(),
    }


def measure_head(
    shape: ModelShape, count: int, logp: LogpFunction, matmul_flops: float
) -> Measurements:
    """Measure logits and log-probabilities of `count` tokens, forward and backward."""
    options: Measurements = {"device": DEVICE, "dtype": torch.bfloat16}
    head = nn.Linear(shape.hidden_size, shape.vocab_size, bias=False, **options)
    hidden = torch.randn(count, shape.hidden_size, requires_grad=True, **options)
    token = torch.randint(shape.vocab_size, (count,), device=DEVICE)

    def step() -> None:
        head.weight.grad = hidden.grad = None
        logp(hidden, token, LMHead(head)).mean().backward()

    reset_peak_memory()
    step()
    seconds = median_time(step)
    flops = 6 * head.weight.numel() * count / seconds
    return _result_row(flops, matmul_flops, seconds, count)
