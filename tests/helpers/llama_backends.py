"""Two-layer Llama-style models, their backends, and counters of native calls."""

import copy
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel, Qwen2Config

from grupo.kernels.backend import Backend, HFBackend
from grupo.kernels.llama import backend as llama_backend
from grupo.kernels.llama.backend import NativeLlamaBackend
from grupo.kernels.llama.detect import native_backend
from grupo.kernels.llama.logit_cache import LogitCache
from grupo.kernels.packing import hf_attention
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.evaluator import PackedEvaluator
from tests.helpers import engine_requests, tiny_lm
from tests.helpers.packed_rows import pack_rows
from tests.helpers.recurrent_model import random_model
from tests.helpers.tiny_lm import ENDS, WIDE

FAMILIES: dict[str, Any] = {
    **{name: engine_requests.FAMILIES[name] for name in ("llama", "mistral", "qwen3")},
    "qwen2": lambda: Qwen2Config(**WIDE, **{**ENDS, "vocab_size": 100}),  # its tokenizer adds one
}


def model_of(config: PreTrainedConfig) -> Any:
    """A random model in which every parameter matters: norms are not 1, biases not 0."""
    model = random_model(config)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 1:
                weight.add_(torch.randn_like(weight), alpha=0.3)
            else:
                weight.mul_(0.6)  # flatter distributions have smaller rounding errors
    return model


def save_model(folder: Path, config: PreTrainedConfig) -> Path:
    """Saves such a model with the tokenizer of all tiny models."""
    model_of(config).save_pretrained(folder)
    tiny_lm.tokenizer().save_pretrained(folder)
    return folder


def policy_of(folder: Path, **options: Any) -> CausalPolicy:
    """A policy with the model in a folder, with answers of at most 8 tokens."""
    return CausalLM(str(folder), **{"max_new_tokens": 8, "device": "cpu", **options}).build()


def native_backend_of(model: PreTrainedModel) -> NativeLlamaBackend:
    hf_attention.use_packed_attention(model)
    backend = native_backend(model)
    assert backend
    return backend


def backend_of(policy: CausalPolicy) -> NativeLlamaBackend:
    """The policy's backend, which must be native."""
    evaluator: Any = policy.evaluator
    assert isinstance(evaluator.backend, NativeLlamaBackend)
    return evaluator.backend


def with_hf_backend(policy: CausalPolicy) -> CausalPolicy:
    """A policy with the same weights that evaluates the model's own modules."""
    other = copy.copy(policy)
    other.evaluator = PackedEvaluator(HFBackend(policy.hf_model))
    return other


def shared_rows() -> list[list[int]]:
    """Four rows that share prefixes of two lengths, and two rows that share nothing."""
    torch.manual_seed(3)
    prompt, turn = (torch.randint(1, 95, (n,)).tolist() for n in (9, 7))
    answers = [torch.randint(1, 95, (n,)).tolist() for n in (6, 1, 9, 3, 5)]
    deep = [[*prompt, *turn, *answers[0]], [*prompt, *turn, *answers[1]], [*prompt, *answers[2]]]
    return [*deep, [*prompt, *answers[3]], answers[4], [7]]


def hidden_of(
    backend: Backend, rows: Sequence[Sequence[int]], dtype: torch.dtype, last: int = 1 << 10
) -> Tensor:
    """Last hidden states of the last tokens of each row, computed on packed rows."""
    packed, length = pack_rows(rows), torch.tensor([len(row) for row in rows])
    assert len(packed.token) < length.sum() or len(rows) == 1
    index = [
        row_index[max(0, n - last) : n]
        for row_index, n in zip(packed.token_index, length.tolist(), strict=True)
    ]
    hidden = backend.evaluate(packed, torch.cat(index)).values
    assert hidden.dtype == dtype
    return hidden


def hidden_and_grads(model: PreTrainedModel, hidden: Tensor) -> list[Tensor]:
    """Hidden states, and the gradients of trained weights for a random weighting of them."""
    model.zero_grad()
    weight = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(1))
    (hidden * weight.to(hidden)).sum().backward()
    weights = list(model.base_model.parameters())
    assert all((weight.grad is not None) == weight.requires_grad for weight in weights)
    grads = (weight.grad for weight in weights)
    return [hidden.detach(), *(grad for grad in grads if grad is not None)]


def relative_error(actual: Tensor, expected: Tensor) -> float:
    """Largest difference, relative to the largest expected number."""
    return ((actual - expected).abs().max() / expected.abs().max()).item()


@contextmanager
def num_threads(count: int) -> Generator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


@contextmanager
def count_calls() -> Generator[Counter[str]]:
    """Counts the native backend's work: `forward` passes, `decode` steps, recomputed `head`s."""
    counts = Counter[str]()

    def counted(name: str, function: Any) -> Any:
        def wrapper(*args: Any) -> Any:
            counts[name] += 1
            return function(*args)

        return wrapper

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NativeLlamaBackend, "forward", counted("forward", NativeLlamaBackend.forward))
        patch.setattr(LogitCache, "compute_logits", counted("head", LogitCache.compute_logits))
        patch.setattr(llama_backend, "decode_step", counted("decode", llama_backend.decode_step))
        yield counts
