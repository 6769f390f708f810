"""Bfloat16 where the device has it; where it would be imitated float32, which is said."""

import pytest
import torch

from grupo.models import loading
from grupo.models.causal_lm import CausalLM
from grupo.models.loading import BFLOAT16_WARNING, Lora
from tests.helpers.tiny_lm import answers

LORAS = pytest.mark.parametrize("lora", [None, Lora(4)], ids=["full", "lora"])


@pytest.fixture
def imitated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor without instructions for it."""
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)


@pytest.mark.usefixtures("imitated")
@LORAS
def test_where_it_would_be_imitated_all_is_as_in_float32(folders, lora):
    same = [CausalLM(folders["llama"], lora, dtype, max_new_tokens=9) for dtype in loading.DTYPES]
    said = []
    for spec in same:
        policy = spec.build()
        batch = answers(policy)
        said.append((batch.inputs["token"], batch.old_logp, policy.signals(batch).logp))
        assert {p.dtype for p in policy.module.parameters()} == {torch.float32}
    assert all(torch.equal(one, other) for one, other in zip(*said, strict=True))


@pytest.mark.usefixtures("imitated")
def test_it_is_said(folders):
    assert (
        BFLOAT16_WARNING
        in CausalLM(folders["llama"], dtype="bfloat16", max_new_tokens=9).build().warnings
    )
    assert BFLOAT16_WARNING not in CausalLM(folders["llama"], max_new_tokens=9).build().warnings


@pytest.mark.usefixtures("bfloat16_here")
@LORAS
def test_where_there_is_some_it_is_computed_in(folders, lora):
    rounded, exact = (
        CausalLM(folders["llama"], lora, dtype, max_new_tokens=9).build()
        for dtype in ("bfloat16", "float32")
    )
    batch = answers(exact)
    rounded.load(exact.weights())  # adapters, too
    off = (rounded.signals(batch).logp - exact.signals(batch).logp)[batch.mask].abs()
    assert 1e-4 < off.max() < 0.5
    assert not rounded.warnings
