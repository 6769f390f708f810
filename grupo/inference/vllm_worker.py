"""Extension of vLLM's workers: loads weights and reports their checksum.

It runs in vLLM's environment and imports nothing of grupo. vLLM imports a copy of this file from a
folder that contains no other module.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import torch
from safetensors import safe_open
from torch.distributed import PrefixStore, ProcessGroupGloo, Store, TCPStore  # pyright: ignore

EXTENSION_VERSION = "2"  # of the methods below
CHUNKED_PREFILL_ERROR = (
    "on a CPU vLLM cannot sample with seeds during chunked prefill; start it with "
    "--no-enable-chunked-prefill"
)
TRANSFER_TIMEOUT = timedelta(seconds=60)  # of one part of a tensor
PART_BYTES = 1 << 28  # of a tensor, sent at once

Weights = Iterator[tuple[str, torch.Tensor]]


class InterruptedTransfer(Exception):
    """The sender ended, or has other weights by now."""


class WeightLoaderExtension:
    """Methods that vLLM adds to its workers, called by name over HTTP."""

    model_runner: Any
    model_config: Any
    vllm_config: Any
    device: torch.device
    grupo_version = ""  # checksum of the loaded weights; "" before the first load

    def grupo_facts(self) -> dict[str, str]:
        """Version of the weights, model, dtype, mode of log-probabilities, unsupported settings."""
        return {
            "extension": EXTENSION_VERSION,
            "version": self.grupo_version,
            "model": str(self.model_config.model),
            "max_model_len": str(self.model_config.max_model_len),
            "dtype": str(self.model_config.dtype).removeprefix("torch."),
            "logprobs": str(self.model_config.logprobs_mode),
            "unsupported": self._grupo_unsupported(),
        }

    def grupo_load(self, path: str, version: str) -> dict[str, str]:
        """Loads the weights in a file, unless they are loaded already.

        Returns:
            {"version": checksum} or {"error": message}.
        """
        return self._grupo_replace(version, lambda digest: read_tensors(path, digest))

    def grupo_receive(self, address: str, port: int, version: str) -> dict[str, str]:
        """Receives weights over a process group, unless they are loaded already.

        Returns:
            As `grupo_load`, or {"interrupted": message}.
        """

        def receive(digest: Any) -> Weights:
            return receive_tensors(address, port, version, self.device, digest)

        return self._grupo_replace(version, receive)

    def grupo_discard(self) -> dict[str, str]:
        """Forgets the version before the weights are discarded."""
        self.grupo_version = ""
        return {"version": ""}

    def _grupo_replace(self, version: str, tensors: Callable[[Any], Weights]) -> dict[str, str]:
        if self.grupo_version == version:  # another process has asked for it
            return {"version": version}
        self.grupo_version = ""  # a failed load leaves a mixture of old and new weights
        digest = new_digest()
        try:
            self._grupo_load(tensors(digest))
        except InterruptedTransfer as error:
            return {"interrupted": str(error)}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
        self.grupo_version = digest.hexdigest()
        return {"version": self.grupo_version}

    def _grupo_unsupported(self) -> str:
        """Why requests would crash this worker, or "" if they would not."""
        chunked = self.vllm_config.scheduler_config.enable_chunked_prefill
        return CHUNKED_PREFILL_ERROR if self.device.type == "cpu" and chunked else ""

    @torch.inference_mode()
    def _grupo_load(self, weights: Weights) -> None:
        from vllm.config import set_current_vllm_config  # pyright: ignore
        from vllm.model_executor.model_loader import reload  # pyright: ignore

        model = self.model_runner.get_model()
        parameters = {name for name, _ in model.named_parameters()}
        with set_current_vllm_config(self.vllm_config):
            # layer by layer, as vLLM's own reload does: some backends repack loaded tensors
            reload.initialize_layerwise_reload(model)
            loaded = model.load_weights(weights)
            reload.finalize_layerwise_reload(model, self.model_config)
        missing = sorted(parameters - loaded)
        if missing:
            raise ValueError(f"{len(missing)} parameters of vLLM are missing, first {missing[0]}")


def read_tensors(path: str, digest: Any) -> Weights:
    """Yields the tensors of a file in alphabetical order and adds each to the digest."""
    with safe_open(path, framework="pt") as file:
        for name in sorted(file.keys()):
            tensor = file.get_tensor(name).contiguous()
            add_to_digest(digest, name, tensor)
            yield name, tensor


def receive_tensors(
    address: str, port: int, version: str, device: torch.device, digest: Any
) -> Weights:
    """Yields tensors in alphabetical order as they arrive, and adds each to the digest.

    Args:
        address: of the sender's store.
        port: of the sender's store.
        version: of the weights that the sender must have.
        device: of the tensors.
        digest: of names, dtypes, shapes and bytes.

    Raises:
        InterruptedTransfer: the sender ended, or has other weights.
    """
    try:
        store = TCPStore(address, port, is_master=False, timeout=TRANSFER_TIMEOUT)
        own = PrefixStore(f"receiver/{store.add('receivers', 1)}", store)
        own.set("version", version)
        header = json.loads(own.get("header"))
        if header["version"] != version:
            raise InterruptedTransfer(f"the sender has weights {header['version']}, not {version}")
        group = process_group(own, 1, device if header["backend"] == "nccl" else None)
        for name, dtype, shape in header["tensors"]:
            tensor = torch.empty(shape, dtype=getattr(torch, dtype), device=device)
            for part in byte_parts(tensor):
                # gloo knows the memory of the machine only
                is_direct = header["backend"] == "nccl" or device.type == "cpu"
                received = part if is_direct else torch.empty(len(part), dtype=torch.uint8)
                group.recv([received], 0, 0).wait()
                if not is_direct:
                    part.copy_(received)
            add_to_digest(digest, name, tensor)
            yield name, tensor
        own.set("received", "")
    except RuntimeError as error:
        cause = " ".join(str(error).split())[:200]
        raise InterruptedTransfer(f"{type(error).__name__}: {cause}") from error


def process_group(store: Store, rank: int, device: torch.device | None) -> Any:
    """The group of a sender, rank 0, and a receiver, rank 1, apart from any default group.

    Args:
        store: of the two.
        rank: of this process.
        device: CUDA device for NCCL; None: gloo.
    """
    if device is None:
        return ProcessGroupGloo(PrefixStore("group", store), rank, 2, TRANSFER_TIMEOUT)
    from torch.distributed import ProcessGroupNCCL  # pyright: ignore

    options = ProcessGroupNCCL.Options()
    options._timeout = TRANSFER_TIMEOUT
    torch.cuda.set_device(device)
    return ProcessGroupNCCL(PrefixStore("group", store), rank, 2, options)


def byte_parts(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The bytes of a contiguous tensor in parts that are sent one by one."""
    if tensor.numel():
        yield from tensor.reshape(-1).view(torch.uint8).split(PART_BYTES)


def new_digest() -> Any:
    """The checksum of no weights."""
    return hashlib.blake2b(digest_size=16)


def add_to_digest(digest: Any, name: str, tensor: torch.Tensor) -> None:
    """Add the name, dtype, shape and bytes of a contiguous tensor."""
    kind = str(tensor.dtype).removeprefix("torch.")
    digest.update(f"{name} {kind} {list(tensor.shape)}\n".encode())
    digest.update(tensor.cpu().reshape(-1).view(torch.uint8).numpy().data)
