"""An estimate of the time of a training step, from a short probe of the device."""

import time
from collections.abc import Callable

import torch

from grupo.config.memory_estimate import StepSize
from grupo.core.component import component
from grupo.models.model_size import ModelSize

# rows and columns of the matrices that are multiplied; on a CPU a product takes less than a
# millisecond, so that other programs interrupt few of them
PROBE_SIZE = {"cpu": 256}
OTHER_PROBE_SIZE = 1024
PROBE_REPEATS = 20
FORWARD = 2  # floating-point operations per parameter and token
BACKWARD = 4
EFFICIENCY = 0.5  # of the probe's speed: attention, small matrices, and Python take the rest


@component
class DeviceSpeed:
    """The speed of a device.

    Args:
        flops: Floating-point operations per second of a matrix product.
        bandwidth: Bytes per second that are read from memory.
    """

    flops: float
    bandwidth: float


def measure_speed(device: torch.device, dtype: torch.dtype) -> DeviceSpeed:
    """The speed of a device, measured in less than a second on most."""
    size = PROBE_SIZE.get(device.type, OTHER_PROBE_SIZE)
    x = torch.ones(size, size, device=device, dtype=dtype)
    large = torch.ones(1 << 23, device=device)
    product = _seconds(lambda: x @ x, device)
    read = _seconds(lambda: large.sum(), device)
    return DeviceSpeed(2 * size**3 / product, large.nbytes / read)


def estimate_step_seconds(
    model: ModelSize,
    step: StepSize,
    speed: DeviceSpeed,
    *,
    compute_bytes: int,
    gradient_checkpointing: bool = False,
) -> float:
    """Seconds of a step in which every answer reaches its limit.

    Generation reads all weights once for each of the `step.answer` tokens of the longest answer,
    and computes one forward pass for each token; an update computes a forward and a backward pass,
    and a second forward pass with gradient checkpointing.
    """
    passes = FORWARD + BACKWARD + FORWARD * gradient_checkpointing
    per_token = model.num_parameters / (EFFICIENCY * speed.flops)
    reading = step.answer * model.num_parameters * compute_bytes / speed.bandwidth
    generation = max(reading, FORWARD * per_token * step.tokens) * step.generates
    return generation + passes * per_token * step.tokens


def _seconds(compute: Callable[[], torch.Tensor], device: torch.device) -> float:
    """The shortest duration of several calls, after one that warms up."""
    durations = []
    for _ in range(PROBE_REPEATS + 1):
        start = time.perf_counter()
        compute()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        durations.append(time.perf_counter() - start)
    return min(durations[1:])
