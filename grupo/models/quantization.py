"""Quantization of frozen weights below trained adapters (QLoRA)."""

import copy
from typing import Any, cast

import torch
from torch import nn

from grupo.core.component import component
from grupo.models.quiet_loading import quiet_transformers
from grupo.util.optional_deps import optional_dependency


@component
class Nf4:
    """Weights of linear layers in 4 bits, NormalFloat. Dettmers et al., 2023, arXiv:2305.14314.

    bitsandbytes stores and multiplies them, on a GPU or a CPU. Embeddings, norms and the layer that
    computes logits keep their precision.

    Args:
        double_quantization: quantize the scales of blocks, too: 0.4 bits per weight less.
    """

    double_quantization: bool = True

    @property
    def bytes_per_weight(self) -> float:
        """Bytes of a weight with its share of the scales of blocks of 64 weights."""
        scale = 1 + 4 / 256 if self.double_quantization else 4
        return 0.5 + scale / 64

    def check(self) -> None:
        """Raise `ConfigError` if the library is not installed."""
        with optional_dependency("bitsandbytes", "quantization"):
            import bitsandbytes  # noqa: F401

    def loading_options(self, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
        """Arguments of transformers' `from_pretrained`.

        Args:
            dtype: type of computations.
            device: where the model lives.
        """
        from transformers import BitsAndBytesConfig

        config = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=self.double_quantization,
            bnb_4bit_compute_dtype=dtype,
        )
        return {"quantization_config": config, "device_map": {"": device}}


def keep_weights_unpacked(model: nn.Module) -> None:
    """Let sampling and training multiply the same quantized weights.

    On processors with AVX512-BF16 bitsandbytes would repack the weights of a layer in its first
    forward pass without gradients. From then on it would compute in bfloat16, and pass no gradient
    on to the layers below.

    Args:
        model: a model with quantized layers.
    """
    name = "support_avx512bf16_for_cpu"
    for layer in model.modules():
        if hasattr(layer, name):
            setattr(layer, name, False)


@torch.no_grad()
def merge_dequantized(module: Any) -> Any:
    """A copy of a quantized model with adapters, in full precision and with the adapters merged.

    Merging into quantized weights would round again, and the result would be another policy.
    """
    from peft.tuners.lora import LoraLayer

    adapted = copy.deepcopy(module)
    root = adapted.get_base_model()
    deltas = {
        name: cast(Any, layer).get_delta_weight(adapter)  # of each kind of LoRA layer
        for name, layer in root.named_modules()
        if isinstance(layer, LoraLayer)
        for adapter in layer.active_adapters
    }
    with quiet_transformers():
        model = adapted.unload().dequantize()
    for name, delta in deltas.items():
        layer = model.get_submodule(name)
        assert isinstance(layer, nn.Linear), "adapters are on linear layers"
        layer.weight += delta.to(layer.weight.dtype)
    return model
