"""bfloat16 is used where the device has it; otherwise float32, with a warning."""

from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from grupo.models import token_statistics
from grupo.models.causal_lm import CausalLM
from grupo.models.devices import BFLOAT16_WARNING
from grupo.models.lora import Lora
from tests.helpers.tiny_lm import answer_batch, generate

LORAS = pytest.mark.parametrize("lora", [None, Lora(4)], ids=["full", "lora"])


@pytest.fixture
def emulated_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor without instructions for bfloat16."""
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)


@pytest.mark.usefixtures("emulated_bfloat16")
@LORAS
def test_emulated_bfloat16_is_computed_in_float32(folders, lora):
    specs = [
        CausalLM(folders["llama"], lora, dtype, max_new_tokens=9)
        for dtype in ("float32", "bfloat16")
    ]
    results = []
    for spec in specs:
        policy = spec.build()
        batch = answer_batch(policy)
        results.append((batch.inputs["token"], batch.old_logp, policy.signals(batch).logp))
        assert {p.dtype for p in policy.module.parameters()} == {torch.float32}
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.usefixtures("emulated_bfloat16")
def test_emulated_bfloat16_gives_a_warning(folders):
    bfloat16 = CausalLM(folders["llama"], dtype="bfloat16", max_new_tokens=9).build()
    float32 = CausalLM(folders["llama"], max_new_tokens=9).build()
    assert BFLOAT16_WARNING in bfloat16.warnings
    assert BFLOAT16_WARNING not in float32.warnings


@pytest.mark.usefixtures("bfloat16_here")
@LORAS
def test_native_bfloat16_is_used(folders, lora):
    rounded, exact = (
        CausalLM(folders["llama"], lora, dtype, max_new_tokens=9).build()
        for dtype in ("bfloat16", "float32")
    )
    batch = answer_batch(exact)
    rounded.load(exact.weights())  # adapters are random, too
    off = (rounded.signals(batch).logp - exact.signals(batch).logp)[batch.mask].abs()
    assert 1e-4 < off.max() < 0.5
    assert not rounded.warnings


class WeightCasts(TorchDispatchMode):
    """Counts how often each weight of a model is cast to bfloat16."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.names = {p.data_ptr(): name for name, p in model.named_parameters()}
        self.counts = Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func._schema.name == "aten::_to_copy" and result.dtype == torch.bfloat16:
            self.counts[self.names.get(args[0].data_ptr(), "")] += 1
        del self.counts[""]
        return result


def hf_policy(folders):
    """A policy in bfloat16 whose layers the Hugging Face modules compute."""
    spec = CausalLM(
        folders["llama"], dtype="bfloat16", max_new_tokens=9, gradient_checkpointing=True
    )
    return spec.build()


@pytest.mark.usefixtures("bfloat16_here")
@pytest.mark.parametrize("is_detached", [False, True])
def test_generation_casts_each_weight_once(is_detached, folders):
    policy = hf_policy(folders)
    if is_detached:
        policy.use_weight_copy_for_generation()
    model: Any = policy.weight_sync
    with WeightCasts(model.model) as casts:
        generate(policy)
    assert len(casts.counts) == 15  # of two layers with seven matrices each, and the head
    assert set(casts.counts.values()) == {1}


@pytest.mark.usefixtures("bfloat16_here")
def test_scoring_casts_each_weight_once(folders, monkeypatch):
    monkeypatch.setattr(token_statistics, "LOGITS_PER_CHUNK", 300)  # the head runs many times
    policy = hf_policy(folders)
    batch = answer_batch(policy)
    names = ("logp", "collision")
    with WeightCasts(policy.hf_model) as casts, torch.no_grad():
        scores = policy.signals(batch, names)
    assert set(casts.counts.values()) == {1}
    with WeightCasts(policy.hf_model) as casts:
        signals = policy.signals(batch, names)
    assert casts.counts["lm_head.weight"] > 2
    for name in names:
        assert torch.equal(signals[name].detach(), scores[name])
