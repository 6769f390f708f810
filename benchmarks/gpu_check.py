"""Correctness of the measured implementations: a small float32 model, and bfloat16 kernels."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from benchmarks.gpu_forward import FORWARDS, PaddedRows, random_rows
from benchmarks.gpu_machine import CUDA, DEVICE, random_model
from benchmarks.gpu_sampling import SamplingRequest, engine_replies
from benchmarks.gpu_sizes import TINY_SIZES, ModelShape
from benchmarks.gpu_update import chunked_logp, full_logp
from grupo.inference.static_rows import StaticDecoding, capture_switch_for
from grupo.kernels.backend import HFBackend
from grupo.kernels.lm_head import LMHead
from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.flex_attention import FlexLayout
from grupo.kernels.packing.prefix_trie import pack
from grupo.kernels.packing.tree_attention import TreeAttention

SMALL_SHAPE = TINY_SIZES.shapes[0]
FLOAT32_TOLERANCE, BFLOAT16_TOLERANCE = 1e-4, 2e-2
Measurements = dict[str, Any]


def small_model() -> PreTrainedModel:
    """Return a float32 model whose next-token distributions are far from uniform."""
    model = random_model(SMALL_SHAPE, torch.float32)
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.ndim > 1):
            parameter.normal_(0, 0.2)
    return model


def _rows() -> PaddedRows:
    return random_rows(SMALL_SHAPE, prompts=3, answers=5, length=70, new=40)


def _result_row(error: float, tolerance: float) -> Measurements:
    return {"error": error, "tolerance": tolerance, "holds": "yes" if error < tolerance else "NO"}


def _relative_error(tensors: Sequence[Tensor], references: Sequence[Tensor]) -> float:
    """Return the largest relative error of the tensors, by their norms."""
    errors = []
    for tensor, reference in zip(tensors, references, strict=True):
        exact = reference.detach().double()
        errors.append(float((tensor.detach().double() - exact).norm() / exact.norm()))
    return max(errors)


@torch.set_grad_enabled(CUDA)  # with gradients, `FlexLayout` uses the kernel of updates
def check_logits(forward: str) -> Measurements:
    """Compare the logits of a forward pass with those of the transformers model."""
    model = small_model()
    rows = _rows()
    logits = LMHead(model.get_output_embeddings())(FORWARDS[forward](model, rows).hidden)
    model.set_attn_implementation("sdpa")
    reference = model(rows.token.to(DEVICE), use_cache=False).logits[rows.row, rows.column]
    return _result_row(_relative_error([logits], [reference]), FLOAT32_TOLERANCE)


def check_gradients(forward: str) -> Measurements:
    """Compare the gradients of all parameters with those of padded rows and full logits."""
    model = small_model()
    rows = _rows()
    head = LMHead(model.get_output_embeddings())
    parameters = list(model.parameters())

    def gradients(name: str, logp: Callable[..., Tensor]) -> Sequence[Tensor]:
        hidden = FORWARDS[name](model, rows).hidden
        return torch.autograd.grad(logp(hidden, rows.answer_tokens, head).mean(), parameters)

    packed = gradients(forward, chunked_logp(1 << 14))
    reference = gradients("dense, sdpa", full_logp)
    return _result_row(_relative_error(packed, reference), FLOAT32_TOLERANCE)


def check_kernels(shape: ModelShape, answers: int) -> Measurements:
    """Compare bfloat16 flex_attention and its gradients with float32 block attention."""
    rows = random_rows(shape, prompts=2, answers=answers, length=150, new=50)
    packed = pack(rows.token, rows.length).to(DEVICE)
    heads = [shape.heads, shape.kv_heads, shape.kv_heads]
    size = len(packed.token)
    qkv = [torch.randn(1, n, size, shape.head_dim, device=DEVICE).bfloat16() for n in heads]
    output_gradient = torch.randn(1, size, shape.heads, shape.head_dim, device=DEVICE)

    def attend(layout: hf_attention.AttentionLayout, dtype: torch.dtype) -> Sequence[Tensor]:
        inputs = [states.to(dtype).requires_grad_() for states in qkv]
        q, k, v = inputs
        output = layout.attend(0, q, k, v, AttentionConfig(shape.head_dim**-0.5))
        return output, *torch.autograd.grad((output * output_gradient).sum(), inputs)

    flex = attend(FlexLayout(packed), torch.bfloat16)
    blockwise = attend(TreeAttention(packed), torch.float32)
    compiled = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    note = {"note": f"{size} packed tokens; {compiled} graphs compiled so far"}
    return _result_row(_relative_error(flex, blockwise), BFLOAT16_TOLERANCE) | note


SAMPLING_REQUEST = SamplingRequest(
    SMALL_SHAPE, prompts=3, rows_per_prompt=4, prompt_length=50, new_tokens=30
)


@torch.no_grad()
def check_engine() -> Measurements:
    """Compare the log-probabilities of grupo's engine with those of the transformers model."""
    model = small_model()
    token, logp = _engine_tokens(model)
    error = _relative_error([logp], [_reference_logp(model, token)])
    return _result_row(error, FLOAT32_TOLERANCE)


@torch.no_grad()
def check_graphs() -> Measurements:
    """Compare captured decode steps with the transformers model and with dynamic steps."""
    model = small_model()
    dynamic_token, _ = _engine_tokens(model)
    switch = capture_switch_for(HFBackend(model))
    token, logp = _engine_tokens(model, StaticDecoding(switch))
    error = _relative_error([logp], [_reference_logp(model, token)])
    equal_frac = float((token == dynamic_token).float().mean())
    if switch and switch.failure:
        raise RuntimeError(switch.failure)
    note = {"note": f"{equal_frac:.1%} of its tokens are those of dynamic steps"}
    return _result_row(error, FLOAT32_TOLERANCE) | note


def _engine_tokens(
    model: PreTrainedModel, static_decoding: StaticDecoding | None = None
) -> tuple[Tensor, Tensor]:
    """Return the tokens of every reply and their log-probabilities."""
    replies = engine_replies(model, SAMPLING_REQUEST, static_decoding=static_decoding)
    token = torch.tensor([reply.tokens for reply in replies], device=DEVICE)
    return token, torch.tensor([reply.logp for reply in replies], device=DEVICE)


def _reference_logp(model: PreTrainedModel, token: Tensor) -> Tensor:
    model.set_attn_implementation("sdpa")
    prompts = torch.tensor([r.tokens for r in SAMPLING_REQUEST.requests], device=DEVICE)
    logits = model(torch.cat([prompts, token], 1), use_cache=False).logits
    logp = logits[:, SAMPLING_REQUEST.prompt_length - 1 : -1].log_softmax(-1)
    return logp.gather(2, token[..., None])[..., 0]
