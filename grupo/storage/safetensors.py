"""Exact tensors in the safetensors format; loading a file executes no code."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from grupo.util.errors import ConfigError
from grupo.util.sharded_tensors import whole

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def check_tensors(tensors: Mapping[str, Tensor], label: str) -> None:
    """Raise `ConfigError` for a tensor of the mapping `label` that a file cannot hold exactly."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor) or tensor.dtype not in DTYPES:
            kind = getattr(tensor, "dtype", type(tensor).__name__)
            allowed = ", ".join(str(dtype).removeprefix("torch.") for dtype in DTYPES)
            raise ConfigError(f"{label}[{name!r}] is {kind}. Allowed: tensors of {allowed}.")
        if tensor.layout != torch.strided or tensor.is_meta:
            raise ConfigError(
                f"{label}[{name!r}] is sparse or has no values. Allowed: dense tensors."
            )
    if "__metadata__" in tensors:
        raise ConfigError(f"{label}['__metadata__']: this name is reserved by the file format.")


def file_chunks(tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    """The bytes of a safetensors file, with one tensor in memory at a time.

    Tensors that share memory are each written in full and no longer share it when loaded.
    """
    names = _file_order(tensors)
    header = {}
    end = 0
    for name in names:
        tensor = tensors[name]
        begin = end
        end += tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    # an empty tensor has no bytes, and one that was made from an array cannot be viewed as bytes
    yield from (_to_bytes(tensors[name]) for name in names if tensors[name].numel())


def join_collectives_of_writer(tensors: Mapping[str, Tensor]) -> None:
    """Take part in the collectives of the rank that writes these tensors with `file_chunks`.

    The writing rank gathers each sharded tensor, for which all ranks must call the collective.
    """
    for name in _file_order(tensors):
        whole(tensors[name])


def _file_order(tensors: Mapping[str, Tensor]) -> list[str]:
    """The widest dtype first, so that every tensor begins at a multiple of its own width."""
    return sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))


class StoredTensors(Mapping[str, Tensor]):
    """The tensors of a file, each read anew when it is accessed: one is in memory at a time.

    Args:
        path: The file, which does not change while its tensors are read.
    """

    def __init__(self, path: Path) -> None:
        self._file = safe_open(path, framework="pt")
        self._names = list(self._file.keys())

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._names:
            raise KeyError(name)
        return self._file.get_tensor(name).clone()  # the file may be removed later

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def load_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file, copied into memory."""
    with safe_open(path, framework="pt") as file:
        # the file may be removed while its tensors are in use
        return {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118


def _to_bytes(tensor: Tensor) -> memoryview:
    flat = whole(tensor.detach()).resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data
