"""Captured decode steps on a simulated CUDA device, with graphs that repeat recorded operations."""

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch

from grupo.inference.base import Reply, Request, generate_all
from grupo.inference.local import LocalEngine
from grupo.inference.sampling_params import Sampling
from grupo.inference.static_rows import StaticDecoding, StaticRows
from grupo.kernels.cuda_graphs import CaptureSwitch, CUDACapture
from grupo.kernels.prefix_cache import PrefixCache
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.util.rng import derive_key
from tests.helpers import tiny_lm
from tests.helpers.engine_requests import PROMPTS, STOP_CONDITIONS, encode
from tests.helpers.fast_cases import fast_cases
from tests.helpers.recorded_graph import GraphRecorder
from tests.helpers.simulated_cuda.host_waits import HostWaits

pytestmark = pytest.mark.slow

SAMPLINGS = (
    Sampling(),
    Sampling(temperature=0.6),
    Sampling(temperature=1.3, top_p=0.8),
    Sampling(top_k=5, min_p=0.02),
    Sampling(top_k=1),
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    context = {"max_position_embeddings": 256}
    return {
        name: str(tiny_lm.save_model(folder / name, name, **context)) for name in ("llama", "qwen3")
    }


@pytest.fixture(scope="module")
def policy(folders: dict[str, str]) -> CausalPolicy:
    return make_policy(folders["llama"])


def make_policy(folder: str, dtype: Any = "float64") -> CausalPolicy:
    return CausalLM(folder, device="cuda", dtype=dtype, max_new_tokens=24).build()


def make_engine(
    policy: CausalPolicy, static: StaticDecoding | None, **stop_conditions: Any
) -> LocalEngine:
    """An engine with an empty prefix cache."""
    evaluator: Any = policy.evaluator
    conditions = replace(STOP_CONDITIONS, context_length=256, **stop_conditions)
    tokenizer = policy.chat_tokenizer.tokenizer
    engine = LocalEngine(evaluator.backend, policy.lm_head, tokenizer, conditions)
    return replace(engine, prefix_cache=PrefixCache(1 << 17), static_decoding=static)


def requests_for(count: int, sampling: Sampling = Sampling(), seed: int = 0) -> list[Request]:
    return [
        Request(encode(PROMPTS[i % len(PROMPTS)]), derive_key(seed, i), sampling)
        for i in range(count)
    ]


def assert_equal(actual: Sequence[Reply], expected: Sequence[Reply]) -> None:
    for reply, other in zip(actual, expected, strict=True):
        assert (reply.tokens, reply.finish_reason) == (other.tokens, other.finish_reason)
        assert reply.logp == pytest.approx(other.logp, abs=1e-6)  # which are float32


@pytest.mark.parametrize("family", fast_cases(1, ["qwen3", "llama"]))
@pytest.mark.parametrize("sampling", fast_cases(1, SAMPLINGS), ids=str)
def test_replayed_steps_generate_what_dynamic_steps_generate(family, sampling, folders):
    policy = make_policy(folders[family])
    recorder = GraphRecorder()
    requests = requests_for(30, sampling)
    static = StaticDecoding(CaptureSwitch(recorder))
    replies = generate_all(make_engine(policy, static, max_new_tokens=40), requests)
    expected = generate_all(make_engine(policy, None, max_new_tokens=40), requests)
    assert_equal(replies, expected)
    assert 0 < recorder.num_captures <= 8
    assert recorder.num_replays > 20


def test_a_step_waits_once_and_an_eviction_never(policy):
    static = StaticDecoding(CaptureSwitch(GraphRecorder()))
    engine = make_engine(policy, static)
    with HostWaits() as waits:
        replies = generate_all(engine, requests_for(30))
    assert len({len(reply.tokens) for reply in replies}) > 3  # rows were removed
    assert waits.count == max(len(reply.tokens) for reply in replies), waits.lines


def test_tensors_keep_their_places_until_one_must_grow(policy, monkeypatch):
    monkeypatch.setattr("grupo.kernels.static_decode_state.MIN_NEW_TOKENS", 8)
    recorder = GraphRecorder()
    static = StaticDecoding(CaptureSwitch(recorder))
    engine = make_engine(policy, static, eos_token_ids=(), max_new_tokens=40)
    places: list[tuple[int, ...]] = []
    step = StaticRows.step

    def record(rows: StaticRows) -> None:
        step(rows)
        kv = rows.state.suffix_kv[0], rows.state.prefix_kv[1]
        tensors = *vars(rows.tensors).values(), *(x for pair in kv for x in pair)
        places.append(tuple(x.data_ptr() for x in tensors))

    monkeypatch.setattr(StaticRows, "step", record)
    generate_all(engine, requests_for(6))
    assert len(places) == 39
    # 8, 16, 32 and 64 tokens
    assert [places.count(place) for place in dict.fromkeys(places)] == [8, 8, 16, 7]
    assert recorder.num_captures == 4
    assert recorder.num_replays == 39 - 4  # the first step of each capacity is the warm-up


def test_captured_steps_are_kept_for_later_batches(policy):
    recorder = GraphRecorder()
    engine = make_engine(policy, StaticDecoding(CaptureSwitch(recorder)), eos_token_ids=())
    for seed in range(3):
        requests = requests_for(8, seed=seed)
        expected = generate_all(make_engine(policy, None, eos_token_ids=()), requests)
        assert_equal(generate_all(engine, requests), expected)
    assert recorder.num_captures == 1
    assert recorder.num_replays == 3 * 23 - 1


@torch.no_grad()
def test_weights_updated_in_place_are_used_by_captured_steps(folders):
    policy = make_policy(folders["llama"])
    recorder = GraphRecorder()
    engine = make_engine(policy, StaticDecoding(CaptureSwitch(recorder)), eos_token_ids=())
    for factor in (1.0, 0.7):
        for parameter in policy.hf_model.parameters():
            parameter.mul_(factor)
        engine.prefix_cache.clear()  # its keys and values are those of other weights
        expected = generate_all(make_engine(policy, None, eos_token_ids=()), requests_for(8))
        assert_equal(generate_all(engine, requests_for(8)), expected)
    assert recorder.num_captures == 1


@torch.no_grad()
def test_weights_in_other_places_are_captured_anew(folders):
    policy = make_policy(folders["llama"])
    recorder = GraphRecorder()
    engine = make_engine(policy, StaticDecoding(CaptureSwitch(recorder)), eos_token_ids=())
    generate_all(engine, requests_for(8))
    for parameter in policy.hf_model.parameters():
        parameter.data = parameter.data.clone() * 0.7
    engine.prefix_cache.clear()
    expected = generate_all(make_engine(policy, None, eos_token_ids=()), requests_for(8))
    assert_equal(generate_all(engine, requests_for(8)), expected)
    assert recorder.num_captures == 2


def test_other_sampling_is_captured_anew(policy):
    recorder = GraphRecorder()
    engine = make_engine(policy, StaticDecoding(CaptureSwitch(recorder)), eos_token_ids=())
    for sampling in (SAMPLINGS[0], SAMPLINGS[1]):
        requests = requests_for(8, sampling)
        expected = generate_all(make_engine(policy, None, eos_token_ids=()), requests)
        assert_equal(generate_all(engine, requests), expected)
    assert recorder.num_captures == 2


def test_with_autocast_steps_are_captured_in_each_batch(folders):
    policy = make_policy(folders["llama"], "bfloat16")
    recorder = GraphRecorder()
    engine = make_engine(policy, StaticDecoding(CaptureSwitch(recorder)), eos_token_ids=())
    for _ in range(2):
        with policy.autocast():
            generate_all(engine, requests_for(8))
    assert recorder.num_captures == 2


@pytest.mark.parametrize("fail_at", fast_cases(1, [2, 1]))
def test_after_a_failed_capture_steps_are_dynamic_and_the_reason_is_logged_once(
    fail_at, policy, caplog
):
    recorder = GraphRecorder(fail_at)
    switch = CaptureSwitch(recorder)
    requests = requests_for(30)
    expected = generate_all(make_engine(policy, None), requests)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            static = StaticDecoding(switch)
            assert_equal(generate_all(make_engine(policy, static), requests), expected)
    assert not static.is_enabled
    assert recorder.num_captures == fail_at
    lines = [r.getMessage() for r in caplog.records if "not captured" in r.getMessage()]
    reason = "RuntimeError: CUDA error: operation failed due to a previous error"
    assert lines == [f"Decode steps are not captured, generation is slower: {reason}"]


def test_a_policy_on_cuda_captures_the_steps_of_llamas_only(folders, tmp_path):
    policies = [make_policy(folders[name]) for name in folders]
    gpt = make_policy(str(tiny_lm.save_model(tmp_path, "gpt2")))
    switches: list[Any] = [policy.evaluator.capture for policy in (*policies, gpt)]
    assert [switch is not None for switch in switches] == [True, True, False]
    copied: Any = policies[0].evaluator.with_model(policies[0].load_frozen_copy().hf_model)
    assert copied.capture is switches[0]
    on_cpu: Any = CausalLM(folders["llama"], device="cpu", max_new_tokens=24).build().evaluator
    assert on_cpu.capture is None


def test_torch_has_no_graphs_of_a_simulated_device(folders, caplog):
    policy = make_policy(folders["llama"])
    tiny_lm.generate(policy)
    assert "Decode steps are not captured" in caplog.text


def test_graphs_of_a_device_share_their_stream_and_memory(monkeypatch):
    captures: list[Any] = []
    devices: list[int] = []

    class Graph:
        num_replays = 0

        def replay(self) -> None:
            self.num_replays += 1

    @contextmanager
    def graph_context(graph: Graph, **options: Any) -> Generator[None]:
        captures.append((graph, options))
        yield

    handles = iter(["first pool", "second pool"])
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", graph_context)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: next(handles))
    capture = CUDACapture(torch.device("cuda:1"))
    replays = [capture(lambda: devices.append(torch.cuda.current_device())) for _ in range(2)]
    assert devices == [1, 1]
    assert torch.cuda.current_device() == 0
    (first, options), (second, others) = captures
    assert first is not second
    assert options == others  # the same stream object
    assert options["pool"] == "first pool"
    assert options["stream"].device == torch.device("cuda:1")
    assert options["capture_error_mode"] == "thread_local"  # another thread may update the policy
    replays[1]()
    assert (first.num_replays, second.num_replays) == (0, 1)
