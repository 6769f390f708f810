"""The machine: timing, peak rates, and models with random weights."""

import time
from collections.abc import Callable
from functools import lru_cache
from statistics import median
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from benchmarks.gpu_sizes import BenchmarkSizes, ModelShape

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
GIB = 1 << 30
WorkFunction = Callable[[], Any]


def machine_name() -> str:
    """Return the name of the GPU."""
    return torch.cuda.get_device_name() if CUDA else "CPU: the figures are meaningless"


def time_once(work: WorkFunction) -> float:
    """Return the seconds of one call, including its kernels on the GPU."""
    _synchronize()
    start = time.perf_counter()
    work()
    _synchronize()
    return time.perf_counter() - start


def median_time(work: WorkFunction, times: int = 3) -> float:
    """Return the median seconds of several calls."""
    return median(time_once(work) for _ in range(times))


def _synchronize() -> None:
    if CUDA:
        torch.cuda.synchronize()


def reset_peak_memory() -> None:
    """Restart the measurement of peak GPU memory."""
    if CUDA:
        torch.cuda.reset_peak_memory_stats()


def peak_memory_gib() -> float | str:
    """Return the peak GiB of all tensors since the reset; empty without CUDA."""
    return torch.cuda.max_memory_allocated() / GIB if CUDA else ""


def copy_bandwidth(sizes: BenchmarkSizes) -> float:
    """Return the bytes/s read and written by a copy between two tensors."""
    source = torch.randint(255, (sizes.copy_bytes,), dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    target.copy_(source)
    return 2 * sizes.copy_bytes / median_time(lambda: target.copy_(source), 10)


def matmul_flops(sizes: BenchmarkSizes) -> float:
    """Return the FLOP/s of a bfloat16 product of random matrices."""
    side = sizes.matrix_size
    times = 10
    a, b = (torch.randn(side, side, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    out = a @ b

    def multiply() -> None:
        for _ in range(times):
            torch.mm(a, b, out=out)

    multiply()  # raises the GPU's clock
    return 2 * side**3 * times / median_time(multiply)


@lru_cache(maxsize=1)
def random_model(shape: ModelShape, dtype: torch.dtype = torch.bfloat16) -> PreTrainedModel:
    """Return a model with random weights; only the most recent model stays in memory."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=shape.vocab_size,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.intermediate_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    config._attn_implementation = "sdpa"
    with torch.device(DEVICE):
        return Qwen3ForCausalLM(config).to(dtype).eval()


def parameter_counts(model: PreTrainedModel) -> tuple[int, int]:
    """Return the parameter counts of the layers and of the head, which is also the embedding."""
    head = model.get_output_embeddings().weight.numel()
    return sum(p.numel() for p in model.parameters()) - head, head


def random_prompts(shape: ModelShape, count: int, length: int) -> list[tuple[int, ...]]:
    """Return prompts of random tokens."""
    generator = torch.Generator().manual_seed(1)
    token: Tensor = torch.randint(2, shape.vocab_size, (count, length), generator=generator)
    return [tuple(row) for row in token.tolist()]
