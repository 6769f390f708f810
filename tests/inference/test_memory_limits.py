"""Limits of an engine's memory: prompts in parts, and smaller batches after a lack of memory."""

from pathlib import Path
from typing import Any

import pytest
import torch

from grupo.inference.base import generate_all
from grupo.inference.memory_limits import MemoryLimits, cpu_limits, gpu_limits
from grupo.kernels.backend import HFBackend
from grupo.kernels.decode_state import DecodeState
from grupo.kernels.llama.backend import NativeLlamaBackend
from grupo.kernels.prefill import PrefillState, prefill_in_parts
from grupo.kernels.prefix_cache import PrefixCache
from grupo.models.causal_policy import CausalPolicy
from tests.helpers.engine_requests import REQUESTS, assert_same_replies, engine_of, policy_of

BACKENDS = ("native", "modules")


@pytest.fixture(params=BACKENDS)
def policy(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch) -> CausalPolicy:
    """A Llama policy, by its own kernels or by the modules of transformers, as on a GPU."""
    if request.param == "modules":
        monkeypatch.setattr("grupo.models.evaluator.native_backend", lambda model, positions: None)
    return policy_of(tmp_path, "llama")


def recorded_pairs(policy: CausalPolicy, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Receives the pairs of tokens of each prefill."""
    pairs = list[int]()
    backend_type: Any = type(policy.evaluator.backend)
    prefill = backend_type.prefill

    def record(backend: Any, token: Any, position: Any, layout: PrefillState, *args: Any) -> Any:
        cached = sum(
            (prefix.queries.stop - prefix.queries.start) * len(prefix.slots)
            for prefix in layout.cached_prefixes
        )
        pairs.append(cached + sum((s.end - s.begin) ** 2 for s in layout.tree.packed.segments))
        return prefill(backend, token, position, layout, *args)

    monkeypatch.setattr(backend_type, "prefill", record)
    return pairs


GIB = 1 << 30


@pytest.mark.parametrize(
    ("total", "training", "kv_bytes", "heads", "tokens", "pairs"),
    [
        # Qwen2.5-7B on 141 GB, LoRA: 28 layers x 2 x 4 heads x 128 x 2 bytes = 57,344. 103 GiB are
        # left: 27.6e9 / 57,344 = 482,000 tokens, and 13.8e9 / (12 x 28) = 41e6 pairs
        (131 * GIB, 28 * GIB, 57_344, 28, 1 << 18, 1 << 25),
        # Qwen2.5-0.5B on 24 GB, all weights: 16 bytes for each of 0.494e9; 24 layers x 2 x 2 heads
        # x 64 x 2 bytes = 12,288. 16.8e9 are left: 342,000 tokens, 2.1e9 / (12 x 14) = 12.5e6 pairs
        (23 * GIB, 7_904_000_000, 12_288, 14, 1 << 18, 1 << 23),
        (80 * GIB, 16 * GIB, 64, 2, 1 << 20, 1 << 28),  # a tiny model: the most tokens
        (8 * GIB, 16 * GIB, 57_344, 28, 1 << 6, 1 << 16),  # nothing is left: the fewest
    ],
)
def test_limits_of_a_gpu_are_those_of_its_memory(total, training, kv_bytes, heads, tokens, pairs):
    limits = gpu_limits(total, training, kv_bytes_per_token=kv_bytes, num_heads=heads)
    assert limits == MemoryLimits(tokens, pairs)


@pytest.mark.parametrize(
    ("kv_bytes", "tokens"),
    [
        (2_048, 1 << 17),  # a tiny model: the most tokens
        (46_080, 1 << 14),  # 16,384 tokens have 0.76 GB, twice as many would have 1.5
        (1_605_632, 1 << 9),
        (1 << 28, 1 << 6),  # the fewest
    ],
)
def test_limits_of_a_cpu_are_those_of_a_gigabyte_of_keys_and_values(kv_bytes, tokens):
    assert cpu_limits(kv_bytes_per_token=kv_bytes) == MemoryLimits(tokens, 1 << 24)


@pytest.mark.parametrize("max_pairs", [60, 400, 1 << 20])
def test_prompts_are_read_in_parts_of_bounded_pairs(max_pairs, policy, monkeypatch):
    torch.manual_seed(0)
    prompts = [tuple(torch.randint(1, 90, (n,)).tolist()) for n in (3, 40, 41, 12, 12)]
    prompts += [(*prompts[1], 5, 6), (*prompts[1], 5, 7)]  # shared prefixes
    pairs = recorded_pairs(policy, monkeypatch)
    results = []
    for limit in (None, max_pairs):
        cache = PrefixCache(1 << 10)
        backend = policy.evaluator.backend
        backend.reset(cache, trained_on=True)
        pairs.clear()
        with torch.no_grad():
            logits, slots = prefill_in_parts(backend, policy.lm_head, cache, prompts, limit)
        keys, _ = cache.read_kv(0, torch.tensor(slots[5]))
        results.append((logits.clone(), keys, [len(s) for s in slots]))
    assert max(pairs) <= max(max_pairs, 43)  # a prompt is read token by token at most
    for actual, expected in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


def fail_with_many_rows(policy: CausalPolicy, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Let steps of more than `most` rows run out of memory."""
    backend_type: Any = type(policy.evaluator.backend)
    assert backend_type in (NativeLlamaBackend, HFBackend)
    decode = backend_type.decode

    def limited(backend: Any, token: Any, position: Any, state: DecodeState, *args: Any) -> Any:
        if len(token) > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return decode(backend, token, position, state, *args)

    monkeypatch.setattr(backend_type, "decode", limited)


@pytest.mark.slow
def test_replies_stay_the_same_after_a_lack_of_memory(policy, monkeypatch, caplog):
    expected = generate_all(engine_of(policy), REQUESTS)
    fail_with_many_rows(policy, monkeypatch, most=7)
    engine = engine_of(policy, max_context_tokens=4096)
    assert_same_replies(generate_all(engine, REQUESTS), expected)
    assert engine.limits.context_tokens == 4096 >> len(caplog.records)
    assert caplog.messages[0].endswith("batches of answers hold 2048 tokens from now on.")


def test_answers_that_have_arrived_are_not_generated_again(policy, monkeypatch):
    engine = engine_of(policy)
    calls = []
    monkeypatch.setattr(
        type(engine),
        "_generate",
        lambda self, requests, waiting: failing_generation(calls, waiting),
    )
    indices = [index for index, _ in engine(REQUESTS[:4])]
    assert sorted(indices) == [0, 1, 2, 3]
    assert [len(call) for call in calls] == [4, 3]


def failing_generation(calls: list[Any], waiting: list[int]) -> Any:
    """Answers one request, then runs out of memory; the second time it answers all."""
    calls.append(waiting)
    for index in waiting:
        yield index, None
        if len(calls) == 1:
            raise MemoryError


def test_a_lack_of_memory_of_the_smallest_batch_is_an_error(policy, monkeypatch):
    fail_with_many_rows(policy, monkeypatch, most=0)
    with pytest.raises(torch.OutOfMemoryError, match=r"2\.00 GiB"):
        generate_all(engine_of(policy), REQUESTS)


def test_limits_are_shared_by_the_engines_of_a_policy(policy):
    first, second = (policy.make_engine(policy.hf_model).engine for _ in range(2))
    first.limits.halve()
    assert second.limits == first.limits != MemoryLimits()
