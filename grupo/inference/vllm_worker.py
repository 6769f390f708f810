"""Extension of vLLM's workers: loads weights from a file and reports their checksum.

It runs in vLLM's environment and imports nothing of grupo. vLLM imports a copy of this file from a
folder that contains no other module.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import torch
from safetensors import safe_open

CHUNKED_PREFILL_ERROR = (
    "on a CPU vLLM cannot sample with seeds during chunked prefill; start it with "
    "--no-enable-chunked-prefill"
)


class WeightLoaderExtension:
    """Methods that vLLM adds to its workers, called by name over HTTP."""

    model_runner: Any
    model_config: Any
    vllm_config: Any
    device: torch.device
    grupo_version = ""  # checksum of the loaded weights; "" before the first load

    def grupo_facts(self) -> dict[str, str]:
        """Version of the weights, dtype, mode of log-probabilities, unsupported settings."""
        return {
            "version": self.grupo_version,
            "dtype": str(self.model_config.dtype).removeprefix("torch."),
            "logprobs": str(self.model_config.logprobs_mode),
            "unsupported": self._grupo_unsupported(),
        }

    def grupo_load(self, path: str) -> dict[str, str]:
        """Loads the weights in a file; returns {"version": checksum} or {"error": message}."""
        self.grupo_version = ""  # a failed load leaves a mixture of old and new weights
        digest = hashlib.blake2b(digest_size=16)
        try:
            self._grupo_load(read_tensors(path, digest))
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
        self.grupo_version = digest.hexdigest()
        return {"version": self.grupo_version}

    def _grupo_unsupported(self) -> str:
        """Why requests would crash this worker, or "" if they would not."""
        chunked = self.vllm_config.scheduler_config.enable_chunked_prefill
        return CHUNKED_PREFILL_ERROR if self.device.type == "cpu" and chunked else ""

    @torch.inference_mode()
    def _grupo_load(self, weights: Iterator[tuple[str, torch.Tensor]]) -> None:
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


def read_tensors(path: str, digest: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields the tensors of a file in alphabetical order and adds each to the digest."""
    with safe_open(path, framework="pt") as file:
        for name in sorted(file.keys()):
            tensor = file.get_tensor(name)
            kind = str(tensor.dtype).removeprefix("torch.")
            digest.update(f"{name} {kind} {list(tensor.shape)}\n".encode())
            digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
            yield name, tensor
