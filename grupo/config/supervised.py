"""Recipes that train on demonstrations in columns alone, without generating and without rewards."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice

from grupo.core.demonstration import Demonstration
from grupo.core.interfaces import env_without_placement
from grupo.core.message_content import content_text
from grupo.core.types import Message, Task
from grupo.core.validation import DemonstrationLimit, PromptLimit, describe_task
from grupo.envs.unscored import Unscored
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.samplers import (
    ConversationColumn,
    DemonstrationSampler,
    GivenAnswerSampler,
    LabelledAnswers,
    LabelledSteps,
    PreferencePairs,
    SelfImprovingPairs,
    SolutionColumn,
)
from grupo.util.errors import ConfigError

MAX_TASKS_CHECKED = 2000  # tasks of a source whose prompts are looked at


def column_sampler(method: Method) -> GivenAnswerSampler | None:
    """The sampler of a method that trains on answers in columns alone; otherwise None."""
    sampler = method.sampler
    if isinstance(sampler, DemonstrationSampler):
        return sampler if isinstance(sampler.solve, ConversationColumn | SolutionColumn) else None
    if isinstance(sampler, PreferencePairs):
        return None if sampler.reward_terms else sampler
    given = LabelledAnswers | LabelledSteps | SelfImprovingPairs
    return sampler if isinstance(sampler, given) else None


def is_supervised(method: Method) -> bool:
    """True for a method that trains on demonstrations in columns alone, and on no preferences."""
    return isinstance(column_sampler(method), DemonstrationSampler)


def sampler_for_demonstration_scores(recipe: Recipe) -> GivenAnswerSampler | None:
    """The sampler that reads the demonstrations of held-out tasks; None if none are scored."""
    return column_sampler(recipe.method) if isinstance(recipe.policy, CausalLM) else None


def length_limit(
    method: Method, limit: PromptLimit | None
) -> PromptLimit | DemonstrationLimit | None:
    """The limit of a task's length: of its prompt, or of the whole demonstration."""
    sampler = column_sampler(method)
    if limit is None or sampler is None or _reads_texts(sampler):
        return limit
    return DemonstrationLimit(limit, partial(_demonstrations, sampler))


def _demonstrations(sampler: GivenAnswerSampler, task: Task) -> Sequence[Demonstration]:
    """The answers of a task that have a prompt of their own.

    All tasks are read, so that none without a demonstration is left; held-out tasks of a method
    that trains on pairs may have none.
    """
    answers = [answer for answer in sampler.solve(task) if isinstance(answer, Demonstration)]
    if not answers and isinstance(sampler, DemonstrationSampler):
        raise ConfigError(
            f"tasks: {describe_task(task)} has no demonstration. Every row needs one, also of"
            " eval_tasks. Mend the row, or remove it."
        )
    return answers


def _reads_texts(sampler: GivenAnswerSampler) -> bool:
    """True if the answers are texts to the environment's first observation."""
    return isinstance(sampler, DemonstrationSampler) and isinstance(sampler.solve, SolutionColumn)


def answers_of(method: Method) -> Callable[[Task], str]:
    """A function that returns the text of a task's answers: its demonstrations', or the reference.

    Args:
        method: Decides whether demonstrations are trained on.
    """
    sampler = column_sampler(method)
    return partial(_demonstrated_text, sampler) if sampler else reference_text


def reference_text(task: Task) -> str:
    """The reference answer of a task as a text."""
    return str(task.reference_answer or "")


def _demonstrated_text(sampler: GivenAnswerSampler, task: Task) -> str:
    """All texts of a task's demonstrations after its prompt."""
    texts = list[str]()
    for solution in sampler.solve(task):
        turns = (("", solution),) if isinstance(solution, str) else solution.turns
        for number, (observation, answer) in enumerate(turns):
            messages = [] if number == 0 or isinstance(observation, str) else observation
            texts += [content_text(message.get("content")) for message in messages]
            texts.append(answer if isinstance(answer, str) else _message_text(answer))
    return "".join(texts)


def _message_text(message: Message) -> str:
    return f"{content_text(message.get('content'))}{message.get('tool_calls') or ''}"


def check_supervised(recipe: Recipe) -> None:
    """Raise `ConfigError` if nothing would be evaluated, or a reward is needed and missing."""
    attempts = recipe.evaluation.attempts
    if not attempts and not sampler_for_demonstration_scores(recipe):
        raise ConfigError(
            "evaluation.attempts: 0. Allowed: 1 or more with this method; 0 with one that trains on"
            " demonstrations alone, such as sft(), whose likelihood is evaluated."
        )
    if not isinstance(env_without_placement(recipe.env), Unscored):
        return
    if not column_sampler(recipe.method):
        raise ConfigError(
            "env: Unscored(), which has no reward. Allowed with this method: an environment with"
            " rewards, such as SingleTurn((RewardTerm(…),)); --reward file.py:function."
        )
    if attempts:
        raise ConfigError(
            f"evaluation.attempts: {attempts}. Allowed without a reward: 0, which evaluates the"
            " likelihood of held-out demonstrations. Give a reward by --reward file.py:function."
        )


def check_prompts(recipe: Recipe, *sources: Sequence[Task]) -> None:
    """Raise `ConfigError` for a row that has a text and no prompt, if its policy generates."""
    if column_sampler(recipe.method) and not recipe.evaluation.attempts:
        return
    for tasks in sources:
        for task in islice(tasks, MAX_TASKS_CHECKED):
            if task.prompt == "" and "text" in task.columns:
                raise ConfigError(
                    f"{task.location or task.key} has no column 'prompt' for the prompt. Name it"
                    " behind the source: \"…(prompt='COLUMN')\", in Python"
                    " Columns(prompt='COLUMN'). The column 'text' is trained on with --method sft"
                    " and --evaluation.attempts 0."
                )
