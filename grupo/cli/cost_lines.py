"""The estimated memory and time of a recipe, in lines for the terminal."""

from pathlib import Path

from grupo.config.defaults import TaskLengths
from grupo.config.memory_estimate import estimate_memory, step_size, supervised_step_size
from grupo.config.supervised import column_sampler
from grupo.config.time_estimate import estimate_step_seconds, measure_speed
from grupo.distributed.start import number_of_ranks
from grupo.models.causal_lm import CausalLM
from grupo.models.loading import compute_dtype, resolve_device
from grupo.models.model_size import read_model_size
from grupo.models.token_statistics import logits_per_chunk_of
from grupo.models.vision_lm import VisionLM
from grupo.recipe import Recipe
from grupo.toy import quickstart


def cost_lines(recipe: Recipe, lengths: TaskLengths) -> list[str]:
    """The estimates; none for policies other than language models.

    Models in memory, those that are not made yet, and multimodal ones are not estimated either.

    Args:
        recipe: The recipe.
        lengths: Number and lengths of its training tasks.
    """
    policy = recipe.policy
    if not isinstance(policy, CausalLM) or not isinstance(policy.model, str):
        return []
    if isinstance(policy, VisionLM):  # the estimates know no towers
        return []
    toy_models = quickstart.TOY_MODEL, quickstart.TOY_VISION_MODEL
    is_toy = policy.model in {str(toy_model.model_dir) for toy_model in toy_models}
    if is_toy and not Path(policy.model).is_dir():
        return []
    device = resolve_device(policy.device)
    dtype = compute_dtype(policy.dtype, device)
    model = read_model_size(policy.model)
    if column_sampler(recipe.method):
        step = supervised_step_size(recipe, min(lengths.mean_row, model.context_length))
        rows = f"demonstrations of {step.answer} tokens on average"
    else:
        step = step_size(recipe, min(lengths.prompt, model.context_length), model.context_length)
        rows = f"answers of {step.answer} tokens"
    seconds = estimate_step_seconds(
        model,
        step,
        measure_speed(device, dtype),
        compute_bytes=dtype.itemsize,
        gradient_checkpointing=policy.gradient_checkpointing,
    )
    memory = estimate_memory(
        recipe,
        model,
        step,
        dtype.itemsize,
        on_cpu=device.type == "cpu",
        logits_per_chunk=logits_per_chunk_of(device),
        ranks=number_of_ranks(),
    )
    return [
        f"memory, estimated: {memory}, besides the libraries'",
        f"time, estimated: about {seconds:,.2g} s per step with {rows}",
    ]
