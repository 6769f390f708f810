"""The estimated memory and time of a recipe, in lines for the terminal, and `--dry-run`."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from grupo.algo.advantages import identity
from grupo.algo.advantages.kl_in_reward import zero_advantage
from grupo.algo.data_source import unit_advantage
from grupo.catalogue.inert_parts import inert_ratio_sentence, unread_advantage_sentence
from grupo.cli.chosen_defaults import ChosenRecipe
from grupo.config.defaults import TaskLengths, with_counted_prompts
from grupo.config.evaluation_choice import half_width
from grupo.config.frozen_models import frozen_bytes
from grupo.config.memory_estimate import estimate_memory
from grupo.config.run_work import RunWork
from grupo.config.step_size import step_size
from grupo.config.supervised import length_limit
from grupo.config.time_estimate import measure_speed
from grupo.config.tool_formats import tool_notes
from grupo.config.validate import check_tasks
from grupo.config.validate_tasks import task_notes
from grupo.distributed.start import number_of_ranks
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.models.devices import compute_dtype, resolve_device
from grupo.models.model_size import read_model_size
from grupo.models.prompt_limit import read_prompt_limit
from grupo.models.token_statistics import logits_per_chunk_of
from grupo.models.vision_lm import VisionLM
from grupo.recipe import Recipe
from grupo.report.step_line import format_count, format_duration
from grupo.tasks.overlong import fit_prompts
from grupo.toy import quickstart

NOT_COMPUTED = (identity, zero_advantage, unit_advantage, Method().advantage)  # fill the slot


def cost_lines(recipe: Recipe, lengths: TaskLengths) -> list[str]:
    """The estimates; none for policies other than language models.

    Models in memory, those that are not made yet, and multimodal ones are not estimated either.

    Args:
        recipe: The recipe.
        lengths: Numbers and lengths of its tasks.
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
    on_cpu = device.type == "cpu"
    work = RunWork(recipe, model, lengths, dtype.itemsize, on_cpu, number_of_ranks())
    return [_memory_line(work, device), *_time_lines(work, device, dtype)]


def dry_run_lines(chosen: ChosenRecipe) -> Iterator[str]:
    """The lines of `--dry-run`: notes about the tasks, and the estimates; no weights are loaded.

    Raises:
        ConfigError: The model's files are missing or malformed, or prompts or answers are too long
            for it.
    """
    recipe = chosen.recipe
    tasks, eval_tasks = chosen.tasks, chosen.eval_tasks
    prompt_limit = None if quickstart.needs_toy_model(recipe) else read_prompt_limit(recipe.policy)
    if limit := length_limit(recipe.method, prompt_limit):
        (tasks, eval_tasks), note = fit_prompts(recipe.overlong, limit, tasks, eval_tasks)
        check_tasks(limit, eval_tasks, tasks)
        if note:
            yield note
    yield from task_notes(recipe, tasks, eval_tasks)
    yield from method_notes(recipe)
    yield from tool_notes(recipe)
    lengths = chosen.lengths
    # prompts with pictures take long to encode, and have no estimates
    if prompt_limit and not isinstance(recipe.policy, VisionLM):
        lengths = with_counted_prompts(lengths, tasks, prompt_limit.prompt_tokens)
    yield from cost_lines(recipe, lengths)


def method_notes(recipe: Recipe) -> Iterator[str]:
    """Notes on parts of the method that cannot act.

    Ratios of 1 in a loss that treats ratios, and an advantage that the loss does not read. An
    advantage that is GRPO's or computes nothing only fills the slot.
    """
    method, sentences = recipe.method, []
    if not recipe.max_staleness:
        sentences.append(inert_ratio_sentence(method))
    if method.advantage not in NOT_COMPUTED:
        sentences.append(unread_advantage_sentence(method))
    yield from (f"method: {text[0].lower()}{text[1:]}." for text in sentences if text)


def _memory_line(work: RunWork, device: torch.device) -> str:
    """The peak of the memory, at the longest prompts."""
    step, context = work.step, work.model.context_length
    prompt = min(work.lengths.prompt, context)
    evaluation = work.evaluation(work.lengths.held_out, work.recipe.evaluation.attempts)
    if step.generates:
        step = step_size(work.recipe, prompt, context)
    memory = estimate_memory(
        work.recipe,
        work.model,
        step,
        work.compute_bytes,
        on_cpu=work.on_cpu,
        logits_per_chunk=logits_per_chunk_of(device),
        ranks=number_of_ranks(),
        evaluation=replace(evaluation, prompt=prompt),
    )
    memory = replace(memory, frozen=frozen_bytes(work.recipe))
    return f"memory, estimated: {memory}, besides the libraries'"


def _time_lines(work: RunWork, device: torch.device, dtype: torch.dtype) -> Iterator[str]:
    """The time of the run, and what its evaluations generate."""
    time = work.time(measure_speed(device, dtype))
    rows = f"answers of {work.step.answer} tokens"
    if not work.step.generates:
        rows = f"demonstrations of {work.step.answer} tokens on average"
    total, evaluations, each, disk = (
        format_duration(seconds)
        for seconds in (time.total, time.evaluations, time.evaluation, time.disk)
    )
    yield (
        f"time, estimated: about {_two_digits(time.step)} s per step with {rows}; {total} in all,"
        f" with {evaluations} for evaluations and {disk} for loading and saving"
    )
    if time.evaluations:
        yield (
            f"evaluation, estimated: {_describe_evaluations(work)}; {each} each time,"
            f" {time.evaluations / time.total:.0%} of the run in all; 95% intervals of up to"
            f" ±{100 * half_width(work.lengths.held_out):.0f} points"
        )


def _two_digits(seconds: float) -> str:
    """A rough number of seconds.

    >>> _two_digits(1344.0), _two_digits(0.0123)
    ('1,300', '0.012')
    """
    return f"{float(f'{seconds:.2g}'):,g}"


def _describe_evaluations(work: RunWork) -> str:
    """The rollouts of evaluations before, during and after training."""
    tasks, evaluation = work.lengths.held_out, work.recipe.evaluation
    size = f"{tasks:,} rows"
    answers = ""
    if attempts := evaluation.attempts:
        size = f"{work.evaluation(tasks, attempts).rollouts:,} rollouts"
        answers = (
            f" ({format_count(tasks, 'task')}, a greedy and {attempts} sampled answers to each)"
        )
    during = f", {size} after every {format_count(evaluation.every, 'step')}"
    during *= work.num_evaluations > 2
    return f"{size} before training{during} and {size} after it{answers}"
