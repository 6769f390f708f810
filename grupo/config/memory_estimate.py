"""An estimate of the peak memory of a run, from its recipe and the size of its model.

The parts are counted, not fitted; `benchmarks/estimates.py` compares their sum with trainings.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields

from grupo.config.step_size import StepSize
from grupo.inference.memory_limits import MAX_CONTEXT_TOKENS, cpu_limits
from grupo.kernels.llama.activation_cache import MAX_RECOMPUTED, cached_tokens
from grupo.models.causal_lm import CausalLM
from grupo.models.model_size import ModelSize
from grupo.models.token_statistics import LOGITS_PER_CHUNK, MAX_SAVED_LOGITS
from grupo.recipe import Recipe

FLOAT32 = 4  # bytes
# numbers that autograd keeps per token and layer, for each output of a linear layer: the output
# itself, and for about half of them, in attention and gated activations, a product with another one
SAVED_PER_OUTPUT = 1.5
# and for each number of the hidden state: inputs and results of two norms, and the residual
SAVED_PER_HIDDEN = 6.0
SAVED_WITH_ADAPTERS = 2.0  # times as many: each adapted layer has an input and an output of its own


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes of the parts of a run's memory at its peak, without those of Python's libraries.

    Args:
        weights: Weights of the policy, of its adapters, of a reference policy and of an average.
        gradients: Gradients of the trained weights.
        optimizer: State of the optimizer.
        activations: Activations of a micro-batch that the backward pass reads.
        logits: Logits of a micro-batch.
        kv_cache: Keys and values of the answers that are generated at once.
        kernel_cache: Activations and logits of generation that the CPU's kernels keep for the
            update, and their copy of the weights.
        frozen: Weights of models beside the policy: judges, learned rewards and teachers.
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float
    logits: float
    kv_cache: float
    kernel_cache: float = 0.0
    frozen: float = 0.0

    @property
    def peak(self) -> float:
        """All parts together."""
        return float(sum(getattr(self, f.name) for f in fields(self)))

    def __str__(self) -> str:
        parts = ((f.name.replace("_", " "), getattr(self, f.name)) for f in fields(self))
        shown = ", ".join(f"{name} {_format_bytes(size)}" for name, size in parts if size >= 5e6)
        return f"about {_format_bytes(self.peak)} at its peak" + f" ({shown})" * bool(shown)


def estimate_memory(
    recipe: Recipe,
    model: ModelSize,
    step: StepSize,
    compute_bytes: int,
    *,
    on_cpu: bool,
    logits_per_chunk: int = LOGITS_PER_CHUNK,
    ranks: int = 1,
    evaluation: StepSize | None = None,
) -> MemoryEstimate:
    """The peak memory of a run, for each rank.

    Args:
        recipe: The recipe; its policy is a `CausalLM`.
        model: The size of its model.
        step: The size of a step.
        compute_bytes: Bytes of a number in the policy's compute dtype on its device.
        on_cpu: Whether the device is the CPU.
        logits_per_chunk: Logits that the device computes at once.
        ranks: The processes that train together, which may divide the weights.
        evaluation: The size of an evaluation, which may need more keys and values than a step;
            None: without evaluations.
    """
    policy = recipe.policy
    assert isinstance(policy, CausalLM)
    lora = policy.lora
    shards = ranks if policy.sharding else 1
    if lora:
        trained = model.num_adapter_parameters(lora.rank, lora.targets)
        weights = _frozen_weights(policy, model, compute_bytes) + FLOAT32 * trained
    else:
        trained = model.num_parameters
        weights = _whole_copies(recipe, compute_bytes, shards) * trained
    weights += FLOAT32 * trained * (recipe.ema is not None) / shards
    if shards > 1:
        weights += _sharded_weights(policy, model, compute_bytes, trained, shards)
    row = step.prompt + step.answer
    tokens = min(max(policy.tokens_per_microbatch, row), step.tokens)
    uses_kernels = has_kernels(policy, model, compute_bytes, on_cpu=on_cpu) and shards == 1
    return MemoryEstimate(
        weights=weights,
        gradients=FLOAT32 * trained / shards,
        optimizer=recipe.optimizer.state_bytes * trained / shards,
        activations=_activations(
            policy, model, step, tokens, compute_bytes, uses_kernels=uses_kernels
        ),
        logits=_logits(
            model, step, tokens, compute_bytes, logits_per_chunk, uses_kernels=uses_kernels
        ),
        kv_cache=_kv_cache(model, filter(None, (step, evaluation)), compute_bytes, on_cpu=on_cpu),
        kernel_cache=FLOAT32 * _kernel_cache(model, step) * uses_kernels,
    )


def has_kernels(policy: CausalLM, model: ModelSize, compute_bytes: int, *, on_cpu: bool) -> bool:
    """Whether the Llama kernels of the CPU train a policy from the activations of generation."""
    plain = not policy.quantization and not policy.gradient_checkpointing
    return on_cpu and model.is_llama and plain and compute_bytes == FLOAT32


def cache_capacity(model: ModelSize) -> int:
    """Tokens whose activations and logits the Llama kernels keep."""
    width = round(_cached_per_layer(model))
    return cached_tokens(model.num_layers, width, model.hidden_size, model.vocab_size)


def _frozen_weights(policy: CausalLM, model: ModelSize, compute_bytes: int) -> float:
    """Bytes of the weights below adapters."""
    if not policy.quantization:
        return float(compute_bytes * model.num_parameters)
    quantized = sum(layer.inputs * layer.outputs for layer in model.linear_layers)
    in_blocks = policy.quantization.bytes_per_weight * quantized
    return compute_bytes * (model.num_parameters - quantized) + in_blocks


def _activations(
    policy: CausalLM,
    model: ModelSize,
    step: StepSize,
    tokens: int,
    compute_bytes: int,
    *,
    uses_kernels: bool,
) -> float:
    """Bytes of the activations of a micro-batch.

    The kernels read those of generation, and compute those of other rows in smaller micro-batches.
    They hold those of one layer in the forward pass, in the backward pass, and their gradients.
    """
    if uses_kernels:
        per_token = _cached_per_token(model)
        recomputed = 0 if step.generates and step.tokens <= cache_capacity(model) else tokens
        in_layer = FLOAT32 * tokens * 3 * _cached_per_layer(model)
        return in_layer + FLOAT32 * min(recomputed * per_token, MAX_RECOMPUTED)
    return tokens * _saved_per_token(policy, model, compute_bytes)


def _logits(
    model: ModelSize,
    step: StepSize,
    tokens: int,
    compute_bytes: int,
    logits_per_chunk: int,
    *,
    uses_kernels: bool,
) -> float:
    """Bytes of the logits held at once: those saved for the backward pass, a chunk, its gradient.

    Those of a smaller compute dtype are there beside their copy in float32.
    """
    count = min(tokens, step.answer_tokens) * model.vocab_size
    chunk = min(count, logits_per_chunk)
    if uses_kernels:  # the saved ones are in the kernels' cache
        return FLOAT32 * chunk
    in_compute_dtype = compute_bytes * chunk if compute_bytes < FLOAT32 else 0
    return FLOAT32 * (min(count, MAX_SAVED_LOGITS) + 2 * chunk) + in_compute_dtype


def _kernel_cache(model: ModelSize, step: StepSize) -> float:
    """Numbers that the Llama kernels keep: activations of every token, logits, and the weights."""
    capacity = cache_capacity(model)
    activations = min(step.tokens * step.generates, capacity) * _cached_per_token(model)
    logits = min(step.answer_tokens, capacity) * model.vocab_size
    return activations + logits + model.num_parameters


def _cached_per_token(model: ModelSize) -> float:
    """Numbers per token that the Llama kernels keep of all layers."""
    return model.num_layers * _cached_per_layer(model) + model.hidden_size


def _cached_per_layer(model: ModelSize) -> float:
    """Numbers per token that the Llama kernels keep of a layer: `ActivationLayout`."""
    return model.linear_outputs / model.num_layers + model.hidden_size


def _whole_copies(recipe: Recipe, compute_bytes: int, shards: int) -> int:
    """Bytes per parameter of whole weights: the policy's, casts of them, and the reference."""
    policy = recipe.policy
    assert isinstance(policy, CausalLM)
    narrow = shards > 1 and policy.sharding and policy.sharding.param_dtype
    stored = compute_bytes if narrow else FLOAT32
    reads_reference = any(s.endswith("@ref") for s in recipe.method.requires.all_signals)
    autocast = compute_bytes if compute_bytes < stored else 0
    return stored + autocast + stored * reads_reference


def _sharded_weights(
    policy: CausalLM, model: ModelSize, compute_bytes: int, trained: float, shards: int
) -> float:
    """Bytes of a rank's share of the weights, and of those that it gathers, with gradients.

    It gathers those outside of layers, a layer, and the next one; without resharding, all layers.
    """
    assert policy.sharding
    frozen = compute_bytes * model.num_parameters if policy.lora else 0
    in_layers = sum(layer.inputs * layer.outputs for layer in model.linear_layers)
    is_resharded = policy.sharding.reshard_after_forward
    layers = 2 * in_layers / model.num_layers if is_resharded else in_layers
    gathered = model.num_parameters - in_layers + layers
    is_narrow = policy.lora or policy.sharding.param_dtype
    copies = 1 if policy.lora else 2  # with gradients of what is trained
    gathered_bytes = copies * (compute_bytes if is_narrow else FLOAT32) * gathered
    return (frozen + FLOAT32 * trained) / shards + gathered_bytes


def _saved_per_token(policy: CausalLM, model: ModelSize, compute_bytes: int) -> float:
    """Bytes per token that the backward pass reads; norms and the residual are in float32."""
    per_layer = compute_bytes * SAVED_PER_OUTPUT * model.linear_outputs / model.num_layers
    per_layer += FLOAT32 * SAVED_PER_HIDDEN * model.hidden_size
    if compute_bytes < FLOAT32:  # the results of both norms once more, for the linear layers
        per_layer += compute_bytes * 2 * model.hidden_size
    per_layer *= SAVED_WITH_ADAPTERS if policy.lora else 1.0
    if policy.gradient_checkpointing:  # the input of every layer; one in full, with its gradients
        gradients = compute_bytes * model.linear_outputs / model.num_layers
        return FLOAT32 * model.num_layers * model.hidden_size + per_layer + gradients
    return model.num_layers * per_layer


def _kv_cache(
    model: ModelSize, sizes: Iterable[StepSize], compute_bytes: int, *, on_cpu: bool
) -> float:
    """Bytes of the keys and values of a batch, of the largest of several generations."""
    limit = max_context_tokens(model, compute_bytes, on_cpu=on_cpu)
    largest = max(min(size.tokens, limit) * size.generates for size in sizes)
    return compute_bytes * _kv_per_token(model) * largest


def max_context_tokens(model: ModelSize, compute_bytes: int, *, on_cpu: bool) -> int:
    """Largest number of tokens whose keys and values the engine holds; on a GPU an assumption."""
    if not on_cpu:
        return MAX_CONTEXT_TOKENS
    per_token = compute_bytes * _kv_per_token(model)
    return cpu_limits(kv_bytes_per_token=per_token).context_tokens


def _kv_per_token(model: ModelSize) -> int:
    return model.kv_size * model.num_layers


def _format_bytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
