"""Memory limits of the engine in this process, from its model and its device."""

import torch
from transformers import PreTrainedModel

from grupo.inference.memory_limits import MemoryLimits, cpu_limits, gpu_limits
from grupo.models.model_size import kv_size_of

BYTES_PER_TRAINED_WEIGHT = 12  # a gradient and two moments in float32


def engine_limits(model: PreTrainedModel, dtype: torch.dtype) -> MemoryLimits:
    """The limits for a model: by its size, and on a GPU by the GPU's memory.

    Args:
        model: the model.
        dtype: of its computations, in which keys and values are stored.
    """
    config = model.config.get_text_config()
    kv_bytes = kv_size_of(config) * config.num_hidden_layers * dtype.itemsize
    if model.device.type != "cuda":
        return cpu_limits(kv_bytes_per_token=kv_bytes)
    parameters = list(model.parameters())
    training = sum(p.numel() * p.element_size() for p in parameters)
    training += BYTES_PER_TRAINED_WEIGHT * sum(p.numel() for p in parameters if p.requires_grad)
    return gpu_limits(
        torch.cuda.get_device_properties(model.device).total_memory,
        training,
        kv_bytes_per_token=kv_bytes,
        num_heads=config.num_attention_heads,
    )
