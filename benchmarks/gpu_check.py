"""Are all ways the same? On a small model in float32, and of the kernels alone in bfloat16."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from benchmarks.gpu_machine import CUDA, DEVICE, model_of
from benchmarks.gpu_readings import READINGS, Rows, rows_of
from benchmarks.gpu_replay import Replayed
from benchmarks.gpu_sampling import Asked, said_by_engine
from benchmarks.gpu_sizes import TINY, Shape
from benchmarks.gpu_update import at_once, in_chunks
from grupo.kernels.lm_head import Head
from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.block_attention import How
from grupo.kernels.packing.flex_attention import Flex
from grupo.kernels.packing.prefix_trie import line
from grupo.kernels.packing.tree_attention import Tree

SMALL = TINY.shapes[0]
EXACT, ROUNDED = 1e-4, 2e-2  # in float32; in bfloat16
Said = dict[str, Any]


def small() -> PreTrainedModel:
    """A model in float32 that prefers some tokens to others."""
    model = model_of(SMALL, torch.float32)
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.ndim > 1):
            parameter.normal_(0, 0.2)
    return model


def _rows() -> Rows:
    return rows_of(SMALL, prompts=3, answers=5, length=70, new=40)


def _row(off: float, allowed: float) -> Said:
    return {"off by": off, "allowed": allowed, "holds": "yes" if off < allowed else "NO"}


def _off(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """How far apart, relative to how large; of several the worst."""
    pairs = [(a.detach().double(), b.detach().double()) for a, b in zip(ours, theirs, strict=True)]
    return max(float((a - b).norm() / b.norm()) for a, b in pairs)


@torch.set_grad_enabled(CUDA)  # with gradients too it is the kernel of updates; see `Flex`
def logits(way: str) -> Said:
    """Logits, against the model as transformers calls it."""
    model, rows = small(), _rows()
    ours = Head(model.get_output_embeddings())(READINGS[way](model, rows).hidden)
    model.set_attn_implementation("sdpa")
    theirs = model(rows.token.to(DEVICE), use_cache=False).logits[rows.row, rows.column]
    return _row(_off([ours], [theirs]), EXACT)


def gradients(way: str) -> Said:
    """Gradients of every parameter, against the dense way with all logits at once."""
    model, rows = small(), _rows()
    head, parameters = Head(model.get_output_embeddings()), list(model.parameters())

    def toward(name: str, logp: Callable[..., Tensor]) -> Sequence[Tensor]:
        hidden = READINGS[name](model, rows).hidden
        return torch.autograd.grad(logp(hidden, rows.said, head).mean(), parameters)

    ours, theirs = toward(way, in_chunks(1 << 14)), toward("dense, sdpa", at_once)
    return _row(_off(ours, theirs), EXACT)


def kernels(shape: Shape, answers: int) -> Said:
    """flex_attention in bfloat16 and its gradients, against parts in float32."""
    rows = rows_of(shape, prompts=2, answers=answers, length=150, new=50)
    one = line(rows.token, rows.length).to(DEVICE)
    heads = [shape.heads, shape.groups, shape.groups]
    size = len(one.token)
    qkv = [torch.randn(1, n, size, shape.width, device=DEVICE).bfloat16() for n in heads]
    weight = torch.randn(1, size, shape.heads, shape.width, device=DEVICE)

    def toward(layout: hf_attention.Layout, dtype: torch.dtype) -> Sequence[Tensor]:
        given = [x.to(dtype).requires_grad_() for x in qkv]
        q, k, v = given
        out = layout.attend(0, q, k, v, How(shape.width**-0.5))
        return out, *torch.autograd.grad((out * weight).sum(), given)

    ours, theirs = toward(Flex(one), torch.bfloat16), toward(Tree(one), torch.float32)
    compiled = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    return _row(_off(ours, theirs), ROUNDED) | {
        "note": f"{size} tokens in a line; compiled {compiled} graphs until now"
    }


ASKED = Asked(SMALL, prompts=3, rows=4, length=50, new=30, stride=8)


@torch.no_grad()
def engine() -> Said:
    """Log-probabilities of what grupo's engine says, against the model as transformers calls it."""
    model = small()
    token, logp = _said(model)
    return _row(_off([logp], [_own(model, token)]), EXACT)


@torch.no_grad()
def graphs() -> Said:
    """The same of the experiment, and how often it says what the engine says."""
    model = small()
    token, _ = _said(model)
    rows = Replayed(model, ASKED.requests, ASKED.new)
    rows.start()
    rows.prepare(ASKED.stride, lambda read: read)
    rows.say()
    off = _off([rows.logp], [_own(model, rows.tokens)])
    alike = float((rows.tokens == token).float().mean())
    return _row(off, EXACT) | {"note": f"{alike:.1%} of its tokens are the engine's"}


def _said(model: PreTrainedModel) -> tuple[Tensor, Tensor]:
    """Tokens of every reply, and their log-probabilities."""
    replies = said_by_engine(model, ASKED)
    token = torch.tensor([reply.tokens for reply in replies], device=DEVICE)
    return token, torch.tensor([reply.logp for reply in replies], device=DEVICE)


def _own(model: PreTrainedModel, token: Tensor) -> Tensor:
    model.set_attn_implementation("sdpa")
    prompts = torch.tensor([r.tokens for r in ASKED.requests], device=DEVICE)
    said = model(torch.cat([prompts, token], 1), use_cache=False).logits
    logp = said[:, ASKED.length - 1 : -1].log_softmax(-1)
    return logp.gather(2, token[..., None])[..., 0]
