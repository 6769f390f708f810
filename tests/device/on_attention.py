"""The attention of updates on a simulated CUDA device: flex_attention where a trial passes."""

import logging
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import AuxOutput

from grupo.kernels.packing import attention_choice, flex_attention
from grupo.kernels.packing.attention_choice import AttentionTrial, is_flex_correct
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.flex_attention import FlexLayout
from grupo.kernels.packing.tree_attention import TreeAttention
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from tests.helpers import tiny_lm
from tests.helpers.dense_flex_attention import plain_flex_attention
from tests.helpers.fast_cases import fast_cases
from tests.helpers.simulated_cuda.host_waits import HostWaits

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def forget_trials() -> None:
    attention_choice.is_flex_correct.cache_clear()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    return {name: str(tiny_lm.save_model(folder / name, name)) for name in ("llama", "gemma2")}


def use_kernel(monkeypatch: pytest.MonkeyPatch, kernel: Any) -> None:
    """Use a function in place of the compiled flex_attention."""
    monkeypatch.setattr(flex_attention, "_compiled_flex", lambda: kernel)


def make_policy(folder: str, **fields: Any) -> CausalPolicy:
    return CausalLM(folder, device="cuda", max_new_tokens=6, **fields).build()


def attention_of(policy: CausalPolicy) -> Any:
    evaluator: Any = policy.evaluator
    return evaluator.backend.attention


@pytest.mark.parametrize("family", fast_cases(1, ["gemma2", "llama"]))
@pytest.mark.parametrize("dtype", fast_cases(1, ["bfloat16", "float32"]))
def test_flex_attention_is_used_if_its_trial_passes(family, dtype, folders, monkeypatch, caplog):
    use_kernel(monkeypatch, plain_flex_attention)
    policy = make_policy(folders[family], dtype=dtype)
    assert attention_of(policy) is FlexLayout
    assert "flex_attention" not in caplog.text
    batch = tiny_lm.answer_batch(policy)
    with HostWaits() as waits:
        logp = policy.signals(batch).logp
        logp.sum().backward()
    assert waits.count == 0, waits.lines
    assert not waits.copy_lines, waits.copy_lines
    assert torch.allclose(logp.cpu(), batch.old_logp, atol=1e-3 if dtype == "float32" else 0.3)
    copied: Any = policy.evaluator.with_model(policy.load_frozen_copy().hf_model)
    assert copied.backend.attention is FlexLayout


def wrong_sums(*qkv: Any, **options: Any) -> Any:
    out, sums = plain_flex_attention(*qkv, **options)
    return out, AuxOutput(lse=sums.lse + 0.1)


@pytest.mark.parametrize(("kernel", "passes"), [(plain_flex_attention, True), (wrong_sums, False)])
def test_a_trial_compares_attention_with_sinks(kernel, passes, monkeypatch):
    use_kernel(monkeypatch, kernel)
    trial = AttentionTrial(4, 2, 8, 8, AttentionConfig(0.3, window=64), has_sinks=True)
    assert is_flex_correct(trial, torch.device("cuda"), torch.float32) == passes


def wrong_gradient(q: Any, k: Any, v: Any, **options: Any) -> Any:
    return plain_flex_attention(q, 2 * k - k.detach(), v, **options)


def wrong_scores(q: Any, k: Any, v: Any, **options: Any) -> Any:
    return plain_flex_attention(q, k, v, **{**options, "scale": 0.9 * options["scale"]})


def not_compiled(*_: Any, **__: Any) -> Any:
    raise AssertionError("no such kernel\nmore lines")


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (wrong_gradient, "its results differ by"),
        (wrong_scores, "its results differ by"),
        (not_compiled, "AssertionError: no such kernel"),
    ],
)
def test_tree_attention_is_used_otherwise_and_the_reason_is_logged_once(
    kernel, reason, folders, monkeypatch, caplog
):
    use_kernel(monkeypatch, kernel)
    with caplog.at_level(logging.WARNING):
        policies = [make_policy(folders["llama"]) for _ in range(2)]
    assert [attention_of(policy) for policy in policies] == [TreeAttention] * 2
    lines = [record.getMessage() for record in caplog.records]
    assert [reason in line for line in lines if "flex_attention" in line] == [True]
    assert "more lines" not in caplog.text


def test_torch_cannot_compile_for_a_simulated_device(folders, caplog):
    assert attention_of(make_policy(folders["llama"])) is TreeAttention
    assert "flex_attention is not used on cuda:0" in caplog.text


def test_a_small_limit_of_scores_gives_the_same_gradients(folders, monkeypatch):
    gradients = []
    for limit in (1 << 24, 50):
        monkeypatch.setattr("grupo.kernels.packing.tree_attention.MAX_BLOCK_PAIRS", limit)
        policy = make_policy(folders["llama"], dtype="float64")
        policy.signals(tiny_lm.answer_batch(policy)).logp.sum().backward()
        gradients.append([p.grad for p in policy.parameters()])
    torch.testing.assert_close(*gradients)
