"""Devices, number formats and the order of sums on simulated CUDA devices."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from grupo.inference.memory_limits import MemoryLimits
from grupo.kernels.backend import HFBackend
from grupo.models import devices
from grupo.models.causal_lm import CausalLM
from grupo.util.errors import ConfigError
from tests.helpers import tiny_lm


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_lm.save_model(tmp_path_factory.mktemp("llama")))


@pytest.mark.parametrize(
    "mistake",
    [
        lambda x: x + torch.ones(3),
        lambda x: x @ torch.ones(3),
        lambda x: torch.cat([x, torch.ones(3)]),
        lambda x: x.gather(0, torch.zeros(1, dtype=torch.long)),
        lambda x: torch.ones(3)[torch.tensor([0], device="cuda")],
        lambda x: x + x.to("cuda:1"),
        lambda x: x.numpy(),
        lambda x: torch.rand(3, device="cuda", generator=torch.Generator()),
        lambda x: x.masked_fill(torch.ones(3) > 0, 0.0),
    ],
)
def test_mistakes_with_devices_raise_errors(mistake):
    with pytest.raises((RuntimeError, TypeError), match="device"):
        mistake(torch.ones(3, device="cuda"))


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + torch.tensor(1.0),
        lambda x: x[torch.tensor([0, 2])],
        lambda x: x.masked_fill(x > 0, torch.tensor(1.0)),
        lambda x: x.to("cpu").numpy(),
        lambda x: torch.rand(3, device="cuda"),
    ],
)
def test_numbers_and_indices_on_the_cpu_are_allowed(use):
    use(torch.ones(3, device="cuda"))


@pytest.mark.parametrize(("name", "index"), [("auto", 0), ("cuda", 0), ("cuda:1", 1)])
def test_a_policy_lives_and_generates_on_its_device(name, index, llama):
    policy = CausalLM(llama, device=name, max_new_tokens=6).build()
    assert policy.device == torch.device("cuda", index)
    batch = tiny_lm.answer_batch(policy)
    logp = policy.signals(batch).logp
    assert logp.device == policy.device
    assert torch.allclose(logp.cpu(), batch.old_logp, atol=1e-4)


def test_generation_and_evaluation_agree_with_those_on_the_cpu(llama):
    on_gpu, on_cpu = (
        CausalLM(llama, device=name, max_new_tokens=6).build() for name in ("cuda", "cpu")
    )
    assert isinstance(on_gpu.evaluator.backend, HFBackend)
    batches = [tiny_lm.answer_batch(policy) for policy in (on_gpu, on_cpu)]
    assert torch.equal(batches[0].inputs["token"], batches[1].inputs["token"])
    assert torch.allclose(batches[0].old_logp, batches[1].old_logp, atol=1e-5)


@pytest.mark.parametrize("has_instructions", [True, False])
def test_bfloat16_is_used_if_the_gpu_has_instructions_for_it(has_instructions, llama, monkeypatch):
    def is_bf16_supported(including_emulation: bool = True) -> bool:
        return including_emulation or has_instructions

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", is_bf16_supported)
    policy = CausalLM(llama, device="cuda", dtype="bfloat16", max_new_tokens=6).build()
    assert policy.dtype == (torch.bfloat16 if has_instructions else torch.float32)
    assert bool(policy.warnings) != has_instructions


def test_memory_that_torch_holds_is_released_before_a_second_try(llama, monkeypatch):
    calls = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append("empty"))
    CausalLM(llama, device="cuda", max_new_tokens=6).build().release_memory()
    CausalLM(llama, device="cpu", max_new_tokens=6).build().release_memory()
    assert calls == ["empty"]


class UnorderedSums(TorchDispatchMode):
    """Records sums into repeated places of CUDA tensors, which are added in no fixed order."""

    def __init__(self) -> None:
        super().__init__()
        self.num_ordered = 0
        self.reports: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.rstrip("_")
        self.num_ordered += name == "aten::index_put" and args[0].is_cuda
        if name in ("aten::index_add", "aten::scatter_add") and args[0].is_cuda:
            dim, index = args[1], args[2]
            lines = index.movedim(dim, -1).reshape(-1, index.shape[dim])
            if any(len(line.unique()) < len(line) for line in lines):
                self.reports.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("checkpointing", [False, True])
def test_gradients_are_added_in_order(checkpointing, llama):
    spec = CausalLM(llama, device="cuda", gradient_checkpointing=checkpointing, max_new_tokens=6)
    policy = spec.build()
    batch = tiny_lm.answer_batch(policy)
    with UnorderedSums() as sums:
        policy.signals(batch, ("logp", "entropy")).logp.sum().backward()
    assert sums.num_ordered
    assert sums.reports == []


def test_a_missing_device_is_a_config_error():
    with pytest.raises(ConfigError, match="device: 'cuda:2' is not available"):
        devices.resolve_device("cuda:2")


def test_detached_generation_has_a_stream_of_its_own(llama, monkeypatch):
    streams = []
    decode = HFBackend.decode

    def record(*args: Any) -> Any:
        streams.append(torch.cuda.current_stream())
        return decode(*args)

    monkeypatch.setattr(HFBackend, "decode", record)
    policy = CausalLM(llama, device="cuda", max_new_tokens=6).build()
    tiny_lm.generate(policy)
    assert set(streams) == {torch.cuda.default_stream()}
    policy.use_weight_copy_for_generation()
    streams.clear()
    tiny_lm.generate(policy)
    own: Any = policy.weight_sync
    assert set(streams) == {own.stream.stream}
    assert torch.cuda.current_stream() is torch.cuda.default_stream()


def test_weights_are_handed_over_when_both_streams_have_ended_their_work(llama):
    policy = CausalLM(llama, device="cuda", max_new_tokens=6).build()
    policy.use_weight_copy_for_generation()
    own, default = policy.weight_sync.stream.stream, torch.cuda.default_stream()
    before = own.num_waits, default.num_waits
    weights = policy.weight_sync.snapshot()
    assert (own.num_waits, default.num_waits) == (before[0], before[1] + 1)
    policy.weight_sync.load(weights)
    assert (own.num_waits, default.num_waits) == (before[0] + 1, before[1] + 1)


def test_limits_of_an_engine_are_those_of_its_device(llama, monkeypatch):
    memory = SimpleNamespace(total_memory=1 << 24)  # 16 MiB
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: memory)
    runs: Any = (("cpu", "float32"), ("cuda", "float32"), ("cuda", "float64"))
    for device, dtype in runs:
        policy = CausalLM(llama, device=device, dtype=dtype, max_new_tokens=6).build()
        size = 8 if dtype == "float64" else 4  # bytes of a number
        parameters = sum(p.numel() for p in policy.parameters())
        left = (1 << 24) - parameters * (size + 12)
        config: Any = policy.hf_model.config
        engine: Any = policy.make_engine(policy.hf_model)
        kv = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * size
        tokens = left // 4 // kv
        limits = engine.engine.limits
        if device == "cpu":
            assert limits == MemoryLimits(1 << 17, 1 << 24)
        else:
            assert tokens // 2 < limits.context_tokens <= tokens
            assert limits.context_tokens.bit_count() == 1
