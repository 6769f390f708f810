"""An update on a GPU, forward and backward: FLOP a second of every way, and its memory."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from benchmarks.gpu_machine import DEVICE, forget_peak, model_of, often, once, parameters, peak
from benchmarks.gpu_readings import Read, Reading, Rows
from benchmarks.gpu_sizes import Shape
from grupo.inference.sampling_params import Sampling
from grupo.kernels.lm_head import Head
from grupo.models.token_statistics import CHUNK, Spoken, measure

Said = dict[str, Any]
Logp = Callable[[Tensor, Tensor, Head], Tensor]


def in_chunks(chunk: int = CHUNK) -> Logp:
    """As grupo's policies do it, so many logits at a time."""

    def said(hidden: Tensor, token: Tensor, head: Head) -> Tensor:
        return measure(Spoken(hidden, token, head, Sampling()), chunk=chunk)["logp"]

    return said


def at_once(hidden: Tensor, token: Tensor, head: Head) -> Tensor:
    """All logits of all tokens, then `log_softmax`."""
    return head(hidden).float().log_softmax(-1).gather(1, token[:, None])[:, 0]


LOGITS = {"chunks": in_chunks(), "at once": at_once}


@contextmanager
def checkpointed(model: PreTrainedModel) -> Iterator[None]:
    """Keep one activation a layer and work out the rest again, as grupo's policies do."""
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of its next name
        model.train().gradient_checkpointing_enable({"use_reentrant": False})
        try:
            yield
        finally:
            model.eval().gradient_checkpointing_disable()


@contextmanager
def everything_kept(model: PreTrainedModel) -> Iterator[None]:
    """Keep what the gradient needs."""
    yield


KEEPING = {"no": everything_kept, "yes": checkpointed}


@dataclass(frozen=True)
class Update:
    """One way of going forward and backward over some rows."""

    reading: Reading
    logp: Logp
    checkpointing: str
    rows: Callable[[], Rows]

    def measured(self, shape: Shape, product: float) -> Said:
        """A row; `product`: FLOP a second of a product of matrices."""
        model, rows = model_of(shape), self.rows()
        done: list[Said] = []
        try:
            with KEEPING[self.checkpointing](model):
                forget_peak()
                first = once(lambda: done.append(self._step(model, rows)))
                seconds = often(lambda: done.append(self._step(model, rows)))
            gradient = float(torch.stack([p.grad.norm() for p in _learning(model)]).norm())
        finally:
            model.zero_grad(set_to_none=True)
        read, logp = done[-1]["read"], float(done[-1]["logp"])
        rate = flop(model, shape, read, len(rows.row)) / seconds
        counts = {"tokens read": read.tokens, "laying out, s": read.laying, "first time, s": first}
        alike = {"mean logp": logp, "gradient": gradient}  # of all ways of reading the same rows
        return _row(rate, product, seconds, len(rows.row)) | counts | alike

    def _step(self, model: PreTrainedModel, rows: Rows) -> Said:
        model.zero_grad(set_to_none=True)
        read = self.reading(model, rows)
        logp = self.logp(read.hidden, rows.said, Head(model.get_output_embeddings())).mean()
        logp.backward()
        return {"logp": logp.detach(), "read": replace(read, hidden=rows.token)}  # frees states


def _learning(model: PreTrainedModel) -> list[Any]:
    return [p for p in model.parameters() if p.grad is not None]


def flop(model: PreTrainedModel, shape: Shape, read: Read, said: int) -> int:
    """6 for each parameter and token, the head's where answers were drawn; and attention's.

    What checkpointing works out again is not counted.
    """
    body, head = parameters(model)
    pair = 12 * shape.layers * shape.heads * shape.width
    return 6 * body * read.tokens + 6 * head * said + pair * read.pairs


def _row(rate: float, product: float, seconds: float, said: int) -> Said:
    return {
        "answer tokens/s": said / seconds,
        "s": seconds,
        "TFLOP/s": rate / 1e12,
        "of product": rate / product,
        "peak GiB": peak(),
    }


def likelihood(shape: Shape, count: int, logp: Logp, product: float) -> Said:
    """The head and what follows alone, for so many tokens, forward and backward: a row."""
    kind: Said = {"device": DEVICE, "dtype": torch.bfloat16}
    head = nn.Linear(shape.hidden, shape.vocabulary, bias=False, **kind)
    hidden = torch.randn(count, shape.hidden, requires_grad=True, **kind)
    token = torch.randint(shape.vocabulary, (count,), device=DEVICE)

    def step() -> None:
        head.weight.grad = hidden.grad = None
        logp(hidden, token, Head(head)).mean().backward()

    forget_peak()
    step()
    seconds = often(step)
    return _row(6 * head.weight.numel() * count / seconds, product, seconds, count)
