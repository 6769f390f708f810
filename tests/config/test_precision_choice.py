"""The default compute dtype follows what the device has, and on a CPU what is fast there."""

import pytest
import torch

from grupo.config import precision_choice
from grupo.config.precision_choice import choose_precision
from grupo.kernels.llama import bfloat16_speed
from grupo.kernels.llama.bfloat16_speed import bfloat16_speedup
from grupo.models.model_size import LinearLayer, ModelSize

CPU = torch.device("cpu")
LAYERS = (LinearLayer("q", 8, 8), LinearLayer("up", 8, 32), LinearLayer("down", 32, 8))
MODEL = ModelSize(1000, 1, 8, 50, 8, 100, LAYERS)


@pytest.fixture
def measured(monkeypatch):
    """Sizes that are measured; the speed-up is set by its list's first entry."""
    calls: list[tuple[int, int]] = []
    speedups: list[float] = [1.0]

    def measure(inputs: int, outputs: int) -> float:
        calls.append((inputs, outputs))
        return speedups[0]

    monkeypatch.setattr(precision_choice, "bfloat16_speedup", measure)
    monkeypatch.setattr(precision_choice, "has_bfloat16", lambda device: True)
    return calls, speedups


@pytest.mark.parametrize(
    ("speedup", "dtype"), [(0.8, "float32"), (1.49, "float32"), (1.5, "bfloat16")]
)
def test_a_cpu_uses_bfloat16_only_where_it_is_faster(measured, speedup, dtype):
    calls, speedups = measured
    speedups[0] = speedup
    [choice] = choose_precision(CPU, MODEL)
    assert (choice.field, choice.value) == ("policy.dtype", dtype)
    assert calls == [(8, 32)]  # the largest layer
    assert f"{speedup:.1f} times as fast" in choice.reason


def test_a_gpu_with_bfloat16_is_not_measured(measured):
    [choice] = choose_precision(torch.device("cuda"), MODEL)
    assert choice.value == "bfloat16"
    assert not measured[0]


def test_without_instructions_nothing_is_chosen(monkeypatch):
    monkeypatch.setattr(precision_choice, "has_bfloat16", lambda device: False)
    assert choose_precision(CPU, MODEL) == []


def test_the_speedup_is_the_time_in_float32_relative_to_that_in_bfloat16(monkeypatch):
    seconds = {torch.float32: 3.0, torch.bfloat16: 2.0}
    monkeypatch.setattr(bfloat16_speed, "_seconds_per_token", lambda n, m, dtype: seconds[dtype])
    assert bfloat16_speedup(63, 95) == 1.5


def test_products_of_both_types_are_measured_once(monkeypatch):
    monkeypatch.setattr(bfloat16_speed, "WEIGHTS_BYTES", 1 << 16)
    first = bfloat16_speedup(64, 96)
    assert first > 0
    monkeypatch.setattr(bfloat16_speed, "_seconds_per_token", lambda n, m, dtype: 1 / 0)
    assert bfloat16_speedup(64, 96) == first
