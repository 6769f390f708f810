"""Models of two layers that lean bodies are of, and what is done for them by which body."""

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel, Qwen2Config

from grupo.kernels.backend import Backend, HFBackend
from grupo.kernels.llama import backend as leaning
from grupo.kernels.llama.backend import NativeLlamaBackend
from grupo.kernels.llama.detect import native_backend
from grupo.kernels.llama.logit_cache import LogitCache
from grupo.kernels.packing import hf_attention
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.evaluator import PackedEvaluator
from tests.helpers import engine_requests, tiny_lm
from tests.helpers.packed_rows import laid
from tests.helpers.recurrent_model import grown
from tests.helpers.tiny_lm import ENDS, WIDE

FAMILIES: dict[str, Any] = {
    **{name: engine_requests.FAMILIES[name] for name in ("llama", "mistral", "qwen3")},
    "qwen2": lambda: Qwen2Config(**WIDE, **{**ENDS, "vocab_size": 100}),  # its tokenizer adds one
}


def made(config: PreTrainedConfig) -> Any:
    """A model of which every number does something: norms are not 1, biases not 0."""
    model = grown(config)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 1:
                weight.add_(torch.randn_like(weight), alpha=0.3)
            else:
                weight.mul_(0.6)  # what is less peaked rounds to less
    return model


def plant(folder: Path, config: PreTrainedConfig) -> Path:
    """Where such a model lies, with the tokenizer of all tiny models."""
    made(config).save_pretrained(folder)
    tiny_lm.tokenizer().save_pretrained(folder)
    return folder


def policy_of(folder: Path, **more: Any) -> CausalPolicy:
    """A policy of the model there, which answers with at most 8 tokens."""
    return CausalLM(str(folder), **{"limit": 8, "device": "cpu", **more}).build()


def leaned(model: PreTrainedModel) -> NativeLlamaBackend:
    """Its lean body."""
    assert hf_attention.try_packed_attention(model)
    body = native_backend(model)
    assert body
    return body


def body_of(policy: CausalPolicy) -> NativeLlamaBackend:
    """The policy's own, which is lean."""
    reader: Any = policy.evaluator
    assert isinstance(reader.body, NativeLlamaBackend)
    return reader.body


def by_modules(policy: CausalPolicy) -> CausalPolicy:
    """The same policy, with the same weights, whose body is the model's own modules."""
    other = copy.copy(policy)
    other.evaluator = PackedEvaluator(HFBackend(policy.hf_model))
    return other


def rows() -> list[list[int]]:
    """One question with a turn that goes on from it, answers to both; and rows alone."""
    torch.manual_seed(3)
    one, turn = (torch.randint(1, 95, (n,)).tolist() for n in (9, 7))
    said = [torch.randint(1, 95, (n,)).tolist() for n in (6, 1, 9, 3, 5)]
    deep = [[*one, *turn, *said[0]], [*one, *turn, *said[1]], [*one, *said[2]]]
    return [*deep, [*one, *said[3]], said[4], [7]]


def hidden_of(
    body: Backend, said: Sequence[Sequence[int]], dtype: torch.dtype, last: int = 1 << 10
) -> Tensor:
    """What a body says of the last tokens of each of the rows, which stand in one line."""
    packed, length = laid(said), torch.tensor([len(row) for row in said])
    assert len(packed.token) < length.sum() or len(said) == 1
    rows = zip(packed.token_index, length.tolist(), strict=True)
    hidden, _ = body.forward_with_grad(
        packed, torch.cat([p[max(0, n - last) : n] for p, n in rows])
    )
    assert hidden.dtype == dtype
    return hidden


def taught(model: PreTrainedModel, hidden: Tensor) -> list[Tensor]:
    """Hidden states, and the gradients of all weights that they come of, each weighed otherwise."""
    model.zero_grad()
    weight = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(1))
    (hidden * weight.to(hidden)).sum().backward()
    grads = [p.grad for p in model.base_model.parameters()]
    assert all(grad is not None for grad in grads)
    return [hidden.detach(), *(grad for grad in grads if grad is not None)]


def off(ours: Tensor, theirs: Tensor) -> float:
    """How far apart they are, for the largest number among them."""
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


@contextmanager
def threads(count: int) -> Iterator[None]:
    """With so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


@contextmanager
def worked() -> Iterator[Counter[str]]:
    """How often lean bodies read lines, `forward`, and say one more token, `decode`; how often
    logits are worked out to learn of them, `head`.
    """
    counts = Counter[str]()

    def counted(name: str, work: Any) -> Any:
        def working(*told: Any) -> Any:
            counts[name] += 1
            return work(*told)

        return working

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NativeLlamaBackend, "forward", counted("forward", NativeLlamaBackend.forward))
        patch.setattr(LogitCache, "compute_logits", counted("head", LogitCache.compute_logits))
        patch.setattr(leaning, "decode", counted("decode", leaning.decode_step))
        yield counts
