"""The time of generations and updates, from counts of operations and a probe of the device.

The work is counted in forward passes: a product of a token with all weights of the layers, and for
tokens of answers with those of the head. The answers are taken to reach their limit.
"""

from collections.abc import Callable

import torch

from grupo.algo.minibatches import Updates
from grupo.config.step_size import StepSize
from grupo.core.component import component
from grupo.core.signal_names import CURRENT, SAMPLER, split_name
from grupo.models.causal_lm import CausalLM
from grupo.models.model_size import ModelSize
from grupo.recipe import Recipe
from grupo.util.timing import shortest_seconds

# rows and columns of the matrices that are multiplied; on a CPU a product takes less than a
# millisecond, so that other programs interrupt few of them
PROBE_SIZE = {"cpu": 256}
OTHER_PROBE_SIZE = 1024
PROBE_REPEATS = 20
FORWARD = 2  # floating-point operations per parameter and token
BACKWARD = 2  # forward passes that take as long: gradients of activations and of weights
BACKWARD_OF_ADAPTERS = 1  # the frozen weights have no gradient
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
    """The speed of a device, measured in less than a second on most.

    On a CPU, one thread computes the product, and the other threads are assumed to be as fast. A
    product of several threads would wait for the slowest one, and would take many times as long on
    a busy machine.
    """
    size = PROBE_SIZE.get(device.type, OTHER_PROBE_SIZE)
    x = torch.ones(size, size, device=device, dtype=dtype)
    large = torch.ones(1 << 23, device=device)
    read = _seconds(lambda: large.sum(), device)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        product = _seconds(lambda: x @ x, device)
    finally:
        torch.set_num_threads(threads)
    parallel = threads if device.type == "cpu" else 1
    return DeviceSpeed(parallel * 2 * size**3 / product, large.nbytes / read)


def forward_flops(model: ModelSize, step: StepSize) -> float:
    """Floating-point operations of a forward pass of all tokens of a step."""
    head = model.head_parameters * step.answer_tokens
    return FORWARD * (model.layer_parameters * step.tokens + head)


def passes_of_update(recipe: Recipe, *, reused_frac: float) -> float:
    """The work of a step besides generation, in forward passes of all its tokens.

    Args:
        recipe: The recipe; its policy is a `CausalLM`.
        reused_frac: The fraction of tokens whose activations of generation the first update reads,
            so that it needs no forward pass for them.
    """
    policy = recipe.policy
    assert isinstance(policy, CausalLM)
    updates = recipe.method.updates
    epochs = updates.epochs if isinstance(updates, Updates) else 1
    backward = BACKWARD_OF_ADAPTERS if policy.lora else BACKWARD
    update = epochs * (1 + backward + policy.gradient_checkpointing)
    models = {split_name(name)[1] for name in recipe.method.requires.all_signals}
    others = models - {"", CURRENT, SAMPLER}
    is_stale = bool(recipe.max_staleness)  # its old log-probabilities are recomputed
    return update - reused_frac * (not is_stale) + len(others) + is_stale


def generation_seconds(
    model: ModelSize, step: StepSize, speed: DeviceSpeed, compute_bytes: int
) -> float:
    """Seconds of a generation in which every answer reaches its limit.

    First it computes the prompts. Then, for each token of the longest answer, it reads all weights,
    and the keys and values of all rows, on average those of half of the answers, while it computes
    the next token of each row: the slower of the two counts.
    """
    if not step.generates:
        return 0.0
    rows = step.prompts * step.prompt + step.answer_tokens / 2
    numbers = model.num_parameters + rows * model.kv_size * model.num_layers
    reading = step.answer * numbers * compute_bytes / speed.bandwidth
    prompts = FORWARD * model.layer_parameters * step.prompts * step.prompt
    seconds_per_flop = 1 / (EFFICIENCY * speed.flops)
    decoding = (forward_flops(model, step) - prompts) * seconds_per_flop
    return prompts * seconds_per_flop + max(reading, decoding)


def _seconds(compute: Callable[[], torch.Tensor], device: torch.device) -> float:
    """The shortest duration of several calls on a device."""

    def compute_and_wait() -> None:
        compute()
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return shortest_seconds(compute_and_wait, PROBE_REPEATS)
