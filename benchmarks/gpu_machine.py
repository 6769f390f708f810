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

from benchmarks.gpu_sizes import Shape, Sizes

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
GIB = 1 << 30
Work = Callable[[], Any]


def name() -> str:
    """What kind of machine it is."""
    return torch.cuda.get_device_name() if CUDA else "a processor: figures mean nothing"


def once(work: Work) -> float:
    """Seconds of doing it, to the end."""
    _wait()
    began = time.perf_counter()
    work()
    _wait()
    return time.perf_counter() - began


def often(work: Work, times: int = 3) -> float:
    """The median of the seconds."""
    return median(once(work) for _ in range(times))


def _wait() -> None:
    if CUDA:
        torch.cuda.synchronize()


def forget_peak() -> None:
    """Count the peak from now on."""
    if CUDA:
        torch.cuda.reset_peak_memory_stats()


def peak() -> float | str:
    """GiB that tensors had at most, those that were there before among them."""
    return torch.cuda.max_memory_allocated() / GIB if CUDA else ""


def copied(sizes: Sizes) -> float:
    """Bytes read and written in a second, as one copies to another."""
    one = torch.randint(255, (sizes.copied,), dtype=torch.uint8, device=DEVICE)
    other = torch.empty_like(one)
    other.copy_(one)
    return 2 * sizes.copied / often(lambda: other.copy_(one), 10)


def multiplied(sizes: Sizes) -> float:
    """Operations a second of a product of matrices in bfloat16, of random numbers."""
    side, times = sizes.square, 10
    a, b = (torch.randn(side, side, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    out = a @ b

    def some() -> None:
        for _ in range(times):
            torch.mm(a, b, out=out)

    some()  # clocks rise first
    return 2 * side**3 * times / often(some)


@contextmanager
def beside() -> Iterator[None]:
    """On another stream: what is done once before it is captured has to be there."""
    if not CUDA:
        yield
        return
    here, there = torch.cuda.current_stream(), torch.cuda.Stream()
    there.wait_stream(here)
    with torch.cuda.stream(there):
        yield
    here.wait_stream(there)


def pool() -> Any:
    """Memory that graphs share: they take turns, and nothing in it outlives its turn."""
    return torch.cuda.graph_pool_handle() if CUDA else None


def captured(work: Work, shared: Any) -> Work:
    """The same as one launch of a graph; on processors as it is."""
    if not CUDA:
        return work
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=shared):
        work()
    return graph.replay


@lru_cache(maxsize=1)
def model_of(shape: Shape, dtype: torch.dtype = torch.bfloat16) -> PreTrainedModel:
    """A model of that shape; only the last one that was asked for is kept."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.groups,
        head_dim=shape.width,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    config._attn_implementation = "sdpa"
    with torch.device(DEVICE):
        return Qwen3ForCausalLM(config).to(dtype).eval()


def parameters(model: PreTrainedModel) -> tuple[int, int]:
    """How many the layers have, and the head, which is the embedding too."""
    head = model.get_output_embeddings().weight.numel()
    return sum(p.numel() for p in model.parameters()) - head, head


def drawn_prompts(shape: Shape, count: int, length: int) -> list[tuple[int, ...]]:
    """Random tokens."""
    made = torch.Generator().manual_seed(1)
    token: Tensor = torch.randint(2, shape.vocabulary, (count, length), generator=made)
    return [tuple(row) for row in token.tolist()]
