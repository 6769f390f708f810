"""What vLLM's workers are extended with: they take over weights from a file and say what it held.

It runs in vLLM's environment and imports nothing of ours; vLLM finds a copy of this file in a
folder of its own, where no other file can be taken for a module of the same name.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import torch
from safetensors import safe_open

CHUNKED_PREFILL_ERROR = (
    "on a processor vLLM cannot draw by seeds while it reads prompts in parts; start it with "
)


class WeightLoaderExtension:
    """Methods that vLLM adds to its workers, called by name over HTTP."""

    model_runner: Any
    model_config: Any
    vllm_config: Any
    device: torch.device
    grupo_version = ""  # of the weights that were pushed last; none yet

    def grupo_facts(self) -> dict[str, str]:
        """What this worker holds, and how it computes and reports log-probabilities."""
        return {
            "version": self.grupo_version,
            "dtype": str(self.model_config.dtype).removeprefix("torch."),
            "logprobs": str(self.model_config.logprobs_mode),
            "trouble": self._grupo_unsupported(),
        }

    def grupo_load(self, path: str) -> dict[str, str]:
        """Load the weights in a file; their checksum as they were loaded, or what went wrong."""
        self.grupo_version = ""  # a load that fails leaves neither the old weights nor the new
        digest = hashlib.blake2b(digest_size=16)
        try:
            self._grupo_load(read_tensors(path, digest))
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
        self.grupo_version = digest.hexdigest()
        return {"version": self.grupo_version}

    def _grupo_unsupported(self) -> str:
        """Why this worker would die of what it will be asked, if it would."""
        parts = self.vllm_config.scheduler_config.enable_chunked_prefill
        cpu = self.device.type == "cpu"
        return CHUNKED_PREFILL_ERROR + "--no-enable-chunked-prefill" if cpu and parts else ""

    @torch.inference_mode()
    def _grupo_load(self, weights: Iterator[tuple[str, torch.Tensor]]) -> None:
        from vllm.config import set_current_vllm_config  # pyright: ignore
        from vllm.model_executor.model_loader import reload  # pyright: ignore

        model = self.model_runner.get_model()
        wanted = {name for name, _ in model.named_parameters()}
        with set_current_vllm_config(self.vllm_config):
            # layer by layer, as vLLM itself reloads: some backends repack what was loaded
            reload.initialize_layerwise_reload(model)
            loaded = model.load_weights(weights)
            reload.finalize_layerwise_reload(model, self.model_config)
        lost = sorted(wanted - loaded)
        if lost:
            raise ValueError(f"{len(lost)} of vLLM's tensors were not among them, first {lost[0]}")


def read_tensors(path: str, digest: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of a file by name, in alphabetical order; `digest` follows."""
    with safe_open(path, framework="pt") as file:
        for name in sorted(file.keys()):
            tensor = file.get_tensor(name)
            kind = str(tensor.dtype).removeprefix("torch.")
            digest.update(f"{name} {kind} {list(tensor.shape)}\n".encode())
            digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
            yield name, tensor
