"""Defaults of a recipe that depend on the model, the tasks and the device that are used."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from grupo.algo.minibatches import Updates
from grupo.config.answer_length import has_one_answer, method_length
from grupo.config.epochs import steps_of_epochs
from grupo.config.supervised import is_supervised, reference_text
from grupo.core.types import Task
from grupo.models.causal_lm import CausalLM
from grupo.models.model_size import ModelSize
from grupo.recipe import Recipe
from grupo.tasks.overlong import error

ANSWER_FIELD = "policy.max_new_tokens"
TOY_PARAMETERS = 20e6  # models below keep the quickstart's numbers
CHECKPOINTING_PARAMETERS = 1e9
LARGE_PARAMETERS = 3e9
MEASURED_PARAMETERS = 3e8  # up to here, the rates that were best at 135 million: docs/real_runs.md
GROUP_SIZE = 8
PROMPTS_PER_STEP = 16
STEPS = (50, 500)  # the fewest and the most
ANSWER_TOKENS = 512
SHORT_ANSWER = 16  # tokens: a number, a word, or a name
# tokens of an answer of a chat model to a question with a short answer: it reasons for as long as
# the question is, or a few times as long; a message counts the answers that this truncates
REASONING_RATIO = 4
FEWEST_TOKENS = 64
SFT_EPOCHS = 3  # of TRL's SFTConfig, as are the learning rates of its script sft.py
MAX_TASKS_READ = 2000  # tasks whose lengths are measured
MAX_TASKS_COUNTED = 200  # tasks whose prompts are tokenized
CHARS_PER_TOKEN = 3  # at least, of most texts and tokenizers


@dataclass(frozen=True)
class Choice:
    """A value that was chosen for a field that the user did not set, and why."""

    field: str
    value: Any
    reason: str

    def __str__(self) -> str:
        return f"{self.field} = {self.value}: {self.reason}"


@dataclass(frozen=True)
class TaskLengths:
    """The numbers of tasks, and upper estimates of their lengths in tokens.

    Args:
        count: Number of tasks.
        prompt: Tokens of the longest prompt.
        answer: Tokens of a long reference answer: nineteen of twenty are not longer.
        long_prompt: Tokens of a long prompt: nineteen of twenty are not longer.
        mean_prompt: Tokens of a prompt, on average.
        mean_row: Tokens of prompt and answer, on average.
        held_out: Number of held-out tasks.
    """

    count: int
    prompt: int
    answer: int
    long_prompt: int
    mean_prompt: int = 0
    mean_row: int = 0
    held_out: int = 0

    def __or__(self, other: "TaskLengths") -> "TaskLengths":
        """The lengths that hold for both: the smaller number of tasks, and the longer texts."""
        return TaskLengths(
            min(self.count, other.count),
            max(self.prompt, other.prompt),
            max(self.answer, other.answer),
            max(self.long_prompt, other.long_prompt),
            max(self.mean_prompt, other.mean_prompt),
            max(self.mean_row, other.mean_row),
            max(self.held_out, other.held_out),
        )


def measure_tasks(
    tasks: Sequence[Task],
    answer_text: Callable[[Task], str] = reference_text,
    *,
    held_out: int = 0,
) -> TaskLengths:
    """The lengths of the first `MAX_TASKS_READ` tasks.

    Args:
        tasks: The tasks.
        answer_text: The text of a task's answer; the reference answer by default.
        held_out: Number of held-out tasks.
    """
    first = list(islice(tasks, MAX_TASKS_READ))
    prompts = [_to_tokens(len(str(task.prompt))) for task in first]
    answers = [_to_tokens(len(answer_text(task))) for task in first]
    longest = max(prompts, default=0)
    means = _mean(prompts), _mean([*map(sum, zip(prompts, answers, strict=True))])
    return TaskLengths(len(tasks), longest, _long(answers), _long(prompts), *means, held_out)


def with_counted_prompts(
    lengths: TaskLengths, tasks: Sequence[Task], prompt_tokens: Callable[[Task], int]
) -> TaskLengths:
    """The lengths with those of prompts counted by the model's tokenizer.

    Args:
        lengths: The lengths, estimated from numbers of characters.
        tasks: The tasks; the first `MAX_TASKS_COUNTED` are counted.
        prompt_tokens: Returns the number of tokens of a task's prompt.
    """
    prompts = [prompt_tokens(task) for task in islice(tasks, MAX_TASKS_COUNTED)]
    if not prompts:
        return lengths
    mean = _mean(prompts)
    return replace(
        lengths,
        prompt=max(prompts),
        long_prompt=_long(prompts),
        mean_prompt=mean,
        mean_row=lengths.mean_row - lengths.mean_prompt + mean,
    )


def _mean(lengths: list[int]) -> int:
    """The mean of lengths, rounded up."""
    return -(-sum(lengths) // max(1, len(lengths)))


def _long(lengths: list[int]) -> int:
    """A length that nineteen of twenty do not exceed."""
    return sorted(lengths)[int(0.95 * (len(lengths) - 1))] if lengths else 0


def choose_defaults(
    recipe: Recipe,
    fields_set: Collection[str],
    model: ModelSize,
    tasks: TaskLengths,
    *,
    precision: Iterable[Choice] = (),
    is_chat_model: bool = False,
) -> list[Choice]:
    """The values for fields that the user did not set.

    Args:
        recipe: The recipe with everything that the user set; its policy is a `CausalLM`.
        fields_set: Names of the fields that the user set, those inside of them included; "method"
            if the user chose one.
        model: Size of the model.
        tasks: Number and lengths of the tasks.
        precision: The choice of the compute dtype, which depends on the device:
            `choose_precision`.
        is_chat_model: Whether the model answers chats, without long reasoning before an answer.
    """
    policy = recipe.policy
    assert isinstance(policy, CausalLM)
    length, reason = _wanted_length(recipe, tasks, is_chat_model=is_chat_model)
    choices = [_answer_length(recipe, model, tasks, Choice(ANSWER_FIELD, length, reason))]
    if model.num_parameters >= TOY_PARAMETERS:
        supervised = is_supervised(recipe.method)
        rate, batch = (_sft_rate, _sft_batch) if supervised else (_learning_rate, _batch)
        choices += [
            rate(policy, model),
            *precision,
            *_checkpointing(model),
            *_group_size(fields_set),
            *batch(recipe, tasks),
        ]
    return [choice for choice in choices if not is_set(choice.field, fields_set)]


def with_choices(recipe: Recipe, choices: Iterable[Choice]) -> Recipe:
    """The recipe with the chosen values."""
    for choice in choices:
        recipe = _replace_field(recipe, choice.field.split("."), choice.value)
    return recipe


def has_short_answers(tasks: TaskLengths) -> bool:
    """Whether the tasks have reference answers, and these are short."""
    return 0 < tasks.answer <= SHORT_ANSWER


def _answer_length(recipe: Recipe, model: ModelSize, tasks: TaskLengths, wanted: Choice) -> Choice:
    """The length that a method states, or the wanted one where a context has the room."""
    if has_one_answer(recipe) and (length := method_length(recipe.method)):
        return Choice(ANSWER_FIELD, length, "the length of an answer that the method is made for")
    room = _answer_room(recipe, model.context_length, tasks)
    reason = f"the room in a context of {model.context_length} tokens"
    return wanted if room >= wanted.value else Choice(ANSWER_FIELD, room, reason)


def _wanted_length(recipe: Recipe, tasks: TaskLengths, *, is_chat_model: bool) -> tuple[int, str]:
    """Tokens of an answer by the lengths of prompts and reference answers, and the reason."""
    if is_chat_model and has_short_answers(tasks) and has_one_answer(recipe):
        length = _power_of_two(REASONING_RATIO * (tasks.long_prompt + tasks.answer))
        if length < ANSWER_TOKENS:
            words = f"a long prompt and its short answer, about {tasks.long_prompt + tasks.answer}"
            return max(length, FEWEST_TOKENS), f"{REASONING_RATIO} times {words} tokens"
    if (length := _power_of_two(2 * tasks.answer)) > ANSWER_TOKENS:
        return length, f"twice a long reference answer of about {tasks.answer} tokens"
    return ANSWER_TOKENS, "room for reasoning before an answer"


def _power_of_two(number: int) -> int:
    """The smallest power of two that is not less."""
    return 1 << max(0, number - 1).bit_length()


def _answer_room(recipe: Recipe, context: int, tasks: TaskLengths) -> int:
    """Tokens that prompts leave for an answer, at most half of the context.

    Prompts that leave less than an eighth do not count: `recipe.overlong` refuses, drops or
    truncates them.
    """
    longest = tasks.prompt if recipe.overlong is error else tasks.long_prompt
    room = context - longest
    return max(1, context // 2 if room < context // 8 else min(room, context // 2))


def _learning_rate(policy: CausalLM, model: ModelSize) -> Choice:
    trained = "LoRA adapters on" if policy.lora else "all weights of"
    reason = f"{trained} a model of {_format_size(model)} are trained"
    if model.num_parameters <= MEASURED_PARAMETERS:
        return Choice("learning_rate", 1e-4 if policy.lora else 1e-5, f"{reason}, as measured")
    with_adapters = 1e-5 if model.num_parameters >= LARGE_PARAMETERS else 2e-5
    return Choice("learning_rate", with_adapters if policy.lora else 1e-6, reason)


def _sft_rate(policy: CausalLM, model: ModelSize) -> Choice:
    if policy.lora is None:
        return Choice("learning_rate", 2e-5, "TRL's for supervised training of all weights")
    return Choice("learning_rate", 2e-4, "TRL's for supervised training of LoRA adapters")


def _sft_batch(recipe: Recipe, tasks: TaskLengths) -> Iterator[Choice]:
    prompts = min(PROMPTS_PER_STEP, tasks.count)
    reason = "all rows" if prompts == tasks.count else "rows of an update, as in TRL's examples"
    yield Choice("prompts_per_step", prompts, reason)
    steps = steps_of_epochs(SFT_EPOCHS, tasks.count, prompts)
    yield Choice("max_steps", steps, f"{SFT_EPOCHS} epochs of {tasks.count} rows, as in TRL")


def _checkpointing(model: ModelSize) -> Iterator[Choice]:
    if model.num_parameters >= CHECKPOINTING_PARAMETERS:
        reason = f"a model of {_format_size(model)}; saves memory, costs a forward pass"
        yield Choice("policy.gradient_checkpointing", True, reason)


def _group_size(fields_set: Collection[str]) -> Iterator[Choice]:
    if not any(field.partition(".")[0] == "method" for field in fields_set):
        yield Choice("method.sampler.group_size", GROUP_SIZE, "as in most published runs")


def _batch(recipe: Recipe, tasks: TaskLengths) -> Iterator[Choice]:
    updates = recipe.method.updates
    least = updates.minibatches if isinstance(updates, Updates) else 1
    prompts = max(least, min(PROMPTS_PER_STEP, tasks.count))
    reason = "all tasks" if prompts == tasks.count else "enough groups for a stable gradient"
    yield Choice("prompts_per_step", prompts, reason)
    fewest, most = STEPS
    one_pass = -(-tasks.count // prompts)
    steps = min(most, max(fewest, one_pass))
    reason = {fewest: "the fewest that show a trend", most: "the most without being asked"}
    yield Choice("max_steps", steps, reason.get(steps, f"one pass over {tasks.count} tasks"))


def is_set(field: str, fields_set: Collection[str]) -> bool:
    """Whether the user set the field, or one that it is inside of."""
    return any(f"{field}.".startswith(f"{name}.") for name in fields_set)


def _replace_field(component: Any, path: Sequence[str], value: Any) -> Any:
    name, *rest = path
    inner = _replace_field(getattr(component, name), rest, value) if rest else value
    return replace(component, **{name: inner})


def _to_tokens(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)


def _format_size(model: ModelSize) -> str:
    millions = model.num_parameters / 1e6
    shown = f"{millions / 1000:.1f} billion" if millions >= 1000 else f"{millions:.0f} million"
    return f"{shown} parameters"
