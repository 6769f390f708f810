"""The compute dtype of a policy by default: bfloat16 where the device multiplies faster in it."""

import torch

from grupo.config.defaults import Choice
from grupo.kernels.llama.bfloat16_speed import bfloat16_speedup
from grupo.models.devices import has_bfloat16
from grupo.models.model_size import ModelSize

BFLOAT16_ON_GPU = Choice("policy.dtype", "bfloat16", "the device has instructions for it")
MIN_SPEEDUP = 1.5  # for which the rounding of bfloat16 is worth it


def choose_precision(device: torch.device, model: ModelSize) -> list[Choice]:
    """The dtype and the reason for it; none where the device has no instructions for bfloat16.

    On a CPU the products of the model's sizes are timed in both types.

    Args:
        device: Where the policy is trained.
        model: Size of its model.
    """
    if not has_bfloat16(device):
        return []
    if device.type != "cpu":
        return [BFLOAT16_ON_GPU]
    largest = max(model.linear_layers, key=lambda layer: layer.inputs * layer.outputs)
    speedup = bfloat16_speedup(largest.inputs, largest.outputs)
    dtype = "bfloat16" if speedup >= MIN_SPEEDUP else "float32"
    reason = f"a bfloat16 product of its sizes is {speedup:.1f} times as fast on this processor"
    return [Choice("policy.dtype", dtype, reason)]
