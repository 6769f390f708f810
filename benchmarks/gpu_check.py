"""Are all ways the same? On a small model in float32, and of the kernels alone in bfloat16."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from benchmarks.gpu_machine import CUDA, DEVICE, random_model
from benchmarks.gpu_readings import FORWARDS, PaddedRows, random_rows
from benchmarks.gpu_replay import GraphSampler
from benchmarks.gpu_sampling import SamplingRequest, engine_replies
from benchmarks.gpu_sizes import TINY_SIZES, ModelShape
from benchmarks.gpu_update import chunked_logp, full_logp
from grupo.kernels.lm_head import LMHead
from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.flex_attention import FlexLayout
from grupo.kernels.packing.prefix_trie import pack
from grupo.kernels.packing.tree_attention import TreeAttention

SMALL_SHAPE = TINY_SIZES.shapes[0]
FLOAT32_TOLERANCE, BFLOAT16_TOLERANCE = 1e-4, 2e-2  # in float32; in bfloat16
Measurements = dict[str, Any]


def small_model() -> PreTrainedModel:
    """A model in float32 that prefers some tokens to others."""
    model = random_model(SMALL_SHAPE, torch.float32)
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.ndim > 1):
            parameter.normal_(0, 0.2)
    return model


def _rows() -> PaddedRows:
    return random_rows(SMALL_SHAPE, prompts=3, answers=5, length=70, new=40)


def _result_row(off: float, allowed: float) -> Measurements:
    return {"off by": off, "allowed": allowed, "holds": "yes" if off < allowed else "NO"}


def _relative_distance(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """How far apart, relative to how large; of several the worst."""
    pairs = [(a.detach().double(), b.detach().double()) for a, b in zip(ours, theirs, strict=True)]
    return max(float((a - b).norm() / b.norm()) for a, b in pairs)


@torch.set_grad_enabled(CUDA)  # with gradients too it is the kernel of updates; see `FlexLayout`
def check_logits(way: str) -> Measurements:
    """Logits, against the model as transformers calls it."""
    model, rows = small_model(), _rows()
    ours = LMHead(model.get_output_embeddings())(FORWARDS[way](model, rows).hidden)
    model.set_attn_implementation("sdpa")
    theirs = model(rows.token.to(DEVICE), use_cache=False).logits[rows.row, rows.column]
    return _result_row(_relative_distance([ours], [theirs]), FLOAT32_TOLERANCE)


def check_gradients(way: str) -> Measurements:
    """Gradients of every parameter, against the dense way with all logits at once."""
    model, rows = small_model(), _rows()
    head, parameters = LMHead(model.get_output_embeddings()), list(model.parameters())

    def toward(name: str, logp: Callable[..., Tensor]) -> Sequence[Tensor]:
        hidden = FORWARDS[name](model, rows).hidden
        return torch.autograd.grad(logp(hidden, rows.answer_tokens, head).mean(), parameters)

    ours, theirs = toward(way, chunked_logp(1 << 14)), toward("dense, sdpa", full_logp)
    return _result_row(_relative_distance(ours, theirs), FLOAT32_TOLERANCE)


def check_kernels(shape: ModelShape, answers: int) -> Measurements:
    """flex_attention in bfloat16 and its gradients, against parts in float32."""
    rows = random_rows(shape, prompts=2, answers=answers, length=150, new=50)
    one = pack(rows.token, rows.length).to(DEVICE)
    heads = [shape.heads, shape.kv_heads, shape.kv_heads]
    size = len(one.token)
    qkv = [torch.randn(1, n, size, shape.head_dim, device=DEVICE).bfloat16() for n in heads]
    weight = torch.randn(1, size, shape.heads, shape.head_dim, device=DEVICE)

    def toward(layout: hf_attention.AttentionLayout, dtype: torch.dtype) -> Sequence[Tensor]:
        given = [x.to(dtype).requires_grad_() for x in qkv]
        q, k, v = given
        out = layout.attend(0, q, k, v, AttentionConfig(shape.head_dim**-0.5))
        return out, *torch.autograd.grad((out * weight).sum(), given)

    ours, theirs = (
        toward(FlexLayout(one), torch.bfloat16),
        toward(TreeAttention(one), torch.float32),
    )
    compiled = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    return _result_row(_relative_distance(ours, theirs), BFLOAT16_TOLERANCE) | {
        "note": f"{size} tokens in a line; compiled {compiled} graphs until now"
    }


SAMPLING_REQUEST = SamplingRequest(
    SMALL_SHAPE, prompts=3, rows_per_prompt=4, prompt_length=50, new_tokens=30, stride=8
)


@torch.no_grad()
def check_engine() -> Measurements:
    """Log-probabilities of what grupo's engine says, against the model as transformers calls it."""
    model = small_model()
    token, logp = _engine_tokens(model)
    return _result_row(
        _relative_distance([logp], [_reference_logp(model, token)]), FLOAT32_TOLERANCE
    )


@torch.no_grad()
def check_graphs() -> Measurements:
    """The same of the experiment, and how often it says what the engine says."""
    model = small_model()
    token, _ = _engine_tokens(model)
    rows = GraphSampler(model, SAMPLING_REQUEST.requests, SAMPLING_REQUEST.new_tokens)
    rows.start()
    rows.capture_steps(SAMPLING_REQUEST.stride, lambda read: read)
    rows.generate()
    off = _relative_distance([rows.logp], [_reference_logp(model, rows.tokens)])
    alike = float((rows.tokens == token).float().mean())
    return _result_row(off, FLOAT32_TOLERANCE) | {
        "note": f"{alike:.1%} of its tokens are the engine's"
    }


def _engine_tokens(model: PreTrainedModel) -> tuple[Tensor, Tensor]:
    """Tokens of every reply, and their log-probabilities."""
    replies = engine_replies(model, SAMPLING_REQUEST)
    token = torch.tensor([reply.tokens for reply in replies], device=DEVICE)
    return token, torch.tensor([reply.logp for reply in replies], device=DEVICE)


def _reference_logp(model: PreTrainedModel, token: Tensor) -> Tensor:
    model.set_attn_implementation("sdpa")
    prompts = torch.tensor([r.tokens for r in SAMPLING_REQUEST.requests], device=DEVICE)
    said = model(torch.cat([prompts, token], 1), use_cache=False).logits
    logp = said[:, SAMPLING_REQUEST.prompt_length - 1 : -1].log_softmax(-1)
    return logp.gather(2, token[..., None])[..., 0]
