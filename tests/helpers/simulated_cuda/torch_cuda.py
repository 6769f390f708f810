"""Functions of `torch.cuda` that need CUDA, for the simulated devices."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import torch

DEVICES = 2
MEMORY = 16 << 30


def index_of(device: Any = None) -> int:
    """The number of a device, by default of the current one."""
    if device is None:
        return torch.ops.simulated_cuda.get_device()
    index = device if isinstance(device, int) else torch.device(device).index
    return torch.ops.simulated_cuda.get_device() if index is None else index


def set_device(device: Any) -> None:
    torch.ops.simulated_cuda.set_device(index_of(device))


@contextmanager
def on_device(device: Any) -> Generator[None]:
    before = index_of()
    set_device(device)
    try:
        yield
    finally:
        set_device(before)


class Stream:
    """A stream on which all work has ended; it counts how often the program waited for it."""

    def __init__(self, device: Any = None, **options: Any) -> None:
        self.device = torch.device("cuda", index_of(device))
        self.num_waits = 0

    def wait_stream(self, stream: "Stream") -> None:
        pass

    def synchronize(self) -> None:
        self.num_waits += 1


DEFAULT_STREAM = Stream("cuda:0")
CURRENT_STREAM = ContextVar("CURRENT_STREAM", default=DEFAULT_STREAM)


@contextmanager
def in_stream(stream: Stream) -> Generator[None]:
    before = CURRENT_STREAM.get()
    CURRENT_STREAM.set(stream)
    try:
        yield
    finally:
        CURRENT_STREAM.set(before)


def clone_storage(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    """A copy of a storage; torch's own function can make none of a simulated device."""
    data = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    return data.clone().untyped_storage()


FUNCTIONS = {
    "_lazy_init": lambda: None,
    "is_available": lambda: True,
    "device_count": lambda: DEVICES,
    "is_bf16_supported": lambda including_emulation=True: True,
    "current_device": index_of,
    "set_device": set_device,
    "device": on_device,
    "synchronize": lambda device=None: None,
    "empty_cache": lambda: None,
    "max_memory_allocated": lambda device=None: 0,
    "memory_allocated": lambda device=None: 0,
    "reset_peak_memory_stats": lambda device=None: None,
    "mem_get_info": lambda device=None: (MEMORY, MEMORY),
    "get_device_name": lambda device=None: "simulated",
    "get_device_capability": lambda device=None: (9, 0),
    "get_device_properties": lambda device=None: SimpleNamespace(
        name="simulated", total_memory=MEMORY, major=9, minor=0, multi_processor_count=1
    ),
    "Stream": Stream,
    "current_stream": lambda device=None: CURRENT_STREAM.get(),
    "default_stream": lambda device=None: DEFAULT_STREAM,
    "stream": in_stream,
    "graph_pool_handle": lambda: None,
}


def replace_functions() -> None:
    """Replace the functions for the rest of the process."""
    for name, function in FUNCTIONS.items():
        setattr(torch.cuda, name, function)
    torch.UntypedStorage.clone = clone_storage
    torch._C._cuda_getCurrentRawStream = lambda device: 0  # bitsandbytes imports it
