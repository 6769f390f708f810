"""bfloat16 is used where the device has it; otherwise float32, with a warning."""

import pytest
import torch

from grupo.models.causal_lm import CausalLM
from grupo.models.loading import BFLOAT16_WARNING, Lora
from tests.helpers.tiny_lm import answer_batch

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
