"""How weights reach the servers: through a file, or memory that processes share."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from grupo.inference.vllm_worker.digest import WeightDigest
from grupo.inference.vllm_worker.shared_memory import shared_handles
from grupo.storage import safetensors


@dataclass(frozen=True)
class PublishedWeights:
    """Weights that any server can be asked to load, by any process.

    Args:
        version: checksum of the weights; "" before the first ones.
        method: of the servers' workers, which loads them.
        args: of the method, before the version.
        base: the weights below, if these are an adapter, which requests name by its version.
    """

    version: str = ""
    method: str = ""
    args: tuple[str | int, ...] = ()
    base: "PublishedWeights | None" = None

    @property
    def adapter(self) -> str:
        """The version of the adapter; "" if these are all weights of the model."""
        return self.version if self.base else ""

    def to_data(self) -> dict[str, Any]:
        """The fields as JSON."""
        return asdict(self)

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> "PublishedWeights":
        """The weights of `to_data`."""
        base = PublishedWeights.from_data(data["base"]) if data["base"] else None
        return PublishedWeights(data["version"], data["method"], tuple(data["args"]), base)


class WeightTransfer(Protocol):
    """Keeps the current weights ready for servers that load them."""

    def publish(self, weights: Mapping[str, Tensor], header: str = "") -> PublishedWeights:
        """Make these the current weights, in place of the previous ones.

        Args:
            weights: by name.
            header: text that the checksum covers besides.
        """
        ...

    def close(self) -> None:
        """Release what the weights need."""
        ...


class FileTransfer:
    """Weights in a safetensors file that the servers read.

    Args:
        file: in a folder that all servers see.
        dtype: of the weights on the servers.
    """

    def __init__(self, file: Path, dtype: torch.dtype) -> None:
        self.file = file
        self.dtype = dtype

    def publish(self, weights: Mapping[str, Tensor], header: str = "") -> PublishedWeights:
        tensors = cpu_tensors(weights, self.dtype)
        self.file.unlink(missing_ok=True)  # frees the disk space of the old weights first
        with self.file.open("wb") as stream:
            stream.writelines(safetensors.file_chunks(tensors))
        return PublishedWeights(checksum(tensors, header), "grupo_load", (str(self.file),))

    def close(self) -> None:
        pass


class SharedMemoryTransfer:
    """Weights in memory that the workers of a server on the same device open, without a copy.

    On a GPU by CUDA IPC, on a CPU in shared memory. The weights stay there until the next ones.

    Args:
        dtype: of the weights on the servers.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.tensors: Mapping[str, Tensor] = {}

    def publish(self, weights: Mapping[str, Tensor], header: str = "") -> PublishedWeights:
        self.tensors = {
            name: x.detach().to(self.dtype if x.is_floating_point() else x.dtype).contiguous()
            for name, x in weights.items()
        }
        safetensors.check_tensors(self.tensors, "weights")
        if any(x.device.type == "cuda" for x in self.tensors.values()):
            torch.cuda.synchronize()  # copies may be under way in other streams
            torch.cuda.ipc_collect()  # the memory of the previous weights
        version = checksum(self.tensors, header)
        return PublishedWeights(version, "grupo_import", (shared_handles(self.tensors),))

    def close(self) -> None:
        self.tensors = {}


def cpu_tensors(weights: Mapping[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """The weights in the memory of this process, floating-point ones in `dtype`."""
    tensors = {
        name: x.detach().to("cpu", dtype if x.is_floating_point() else x.dtype).contiguous()
        for name, x in weights.items()
    }
    safetensors.check_tensors(tensors, "weights")
    return tensors


def checksum(tensors: Mapping[str, Tensor], header: str = "") -> str:
    """Checksum of names, dtypes, shapes and bytes, in the alphabetical order of names."""
    digest = WeightDigest(header)
    for name in sorted(tensors):
        digest.add(name, tensors[name])
    return digest.hexdigest()


def publish_adapter(
    transfer: WeightTransfer,
    weights: Mapping[str, Tensor],
    settings: Mapping[str, Any],
    base: PublishedWeights,
) -> PublishedWeights:
    """Make an adapter the current one; its version covers its settings and the weights below.

    Args:
        transfer: of adapters.
        weights: the matrices by their names in peft's files.
        settings: of the adapter, by their names in `adapter_config.json`.
        base: the weights below.
    """
    config = json.dumps({**settings, "base": base.version}, sort_keys=True)
    plain = transfer.publish(weights, config)
    return PublishedWeights(plain.version, f"{plain.method}_adapter", (config, *plain.args), base)
