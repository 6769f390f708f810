"""The machine, what it can do at most, and models with random weights on it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    """What kind of machine it is."""
    return torch.cuda.get_device_name() if CUDA else "a processor: figures mean nothing"


def time_once(work: WorkFunction) -> float:
    """Seconds of doing it, to the end."""
    _synchronize()
    began = time.perf_counter()
    work()
    _synchronize()
    return time.perf_counter() - began


def median_time(work: WorkFunction, times: int = 3) -> float:
    """The median of the seconds."""
    return median(time_once(work) for _ in range(times))


def _synchronize() -> None:
    if CUDA:
        torch.cuda.synchronize()


def reset_peak_memory() -> None:
    """Count the peak from now on."""
    if CUDA:
        torch.cuda.reset_peak_memory_stats()


def peak_memory_gib() -> float | str:
    """GiB that tensors had at most, those that were there before among them."""
    return torch.cuda.max_memory_allocated() / GIB if CUDA else ""


def copy_bandwidth(sizes: BenchmarkSizes) -> float:
    """Bytes read and written in a second, as one copies to another."""
    one = torch.randint(255, (sizes.copy_bytes,), dtype=torch.uint8, device=DEVICE)
    other = torch.empty_like(one)
    other.copy_(one)
    return 2 * sizes.copy_bytes / median_time(lambda: other.copy_(one), 10)


def matmul_flops(sizes: BenchmarkSizes) -> float:
    """Operations a second of a product of matrices in bfloat16, of random numbers."""
    side, times = sizes.matrix_size, 10
    a, b = (torch.randn(side, side, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    out = a @ b

    def some() -> None:
        for _ in range(times):
            torch.mm(a, b, out=out)

    some()  # clocks rise first
    return 2 * side**3 * times / median_time(some)


@contextmanager
def side_stream() -> Iterator[None]:
    """On another stream: what is done once before it is captured has to be there."""
    if not CUDA:
        yield
        return
    here, there = torch.cuda.current_stream(), torch.cuda.Stream()
    there.wait_stream(here)
    with torch.cuda.stream(there):
        yield
    here.wait_stream(there)


def graph_pool() -> Any:
    """Memory that graphs share: they take turns, and nothing in it outlives its turn."""
    return torch.cuda.graph_pool_handle() if CUDA else None


def capture_graph(work: WorkFunction, memory_pool: Any) -> WorkFunction:
    """The same as one launch of a graph; on processors as it is."""
    if not CUDA:
        return work
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=memory_pool):
        work()
    return graph.replay


@lru_cache(maxsize=1)
def random_model(shape: ModelShape, dtype: torch.dtype = torch.bfloat16) -> PreTrainedModel:
    """A model of that shape; only the last one that was asked for is kept."""
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
    """How many the layers have, and the head, which is the embedding too."""
    head = model.get_output_embeddings().weight.numel()
    return sum(p.numel() for p in model.parameters()) - head, head


def random_prompts(shape: ModelShape, count: int, length: int) -> list[tuple[int, ...]]:
    """Random tokens."""
    made = torch.Generator().manual_seed(1)
    token: Tensor = torch.randint(2, shape.vocab_size, (count, length), generator=made)
    return [tuple(row) for row in token.tolist()]
