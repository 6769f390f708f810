"""Digits to shift: a world in which a pipeline of several stages takes a minute on a CPU.

The answer to `395=` is `406`: each digit plus 1, modulo 10. Some digits of the demonstrations are
wrong, so that the policy after supervised training is wrong as often, and later stages have
something to improve.
"""

import random
from collections.abc import Iterator
from pathlib import Path

from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Evaluation, Recipe
from grupo.rewards import FunctionReward
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.tasks import FromFunction
from grupo.toy.tokenizers import word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture

ARCHITECTURE = LlamaArchitecture(hidden_size=48, intermediate_size=96, context_length=32)
HELD_OUT = 200  # of the 1000 tasks
WRONG = 0.3  # of the digits of demonstrations


def training_tasks() -> Iterator[Task]:
    """800 tasks, each with a demonstration as `completion`."""
    return (shift_task(digits) for digits in _all_digits()[HELD_OUT:])


def held_out_tasks() -> Iterator[Task]:
    """The 200 other tasks."""
    return (shift_task(digits) for digits in _all_digits()[:HELD_OUT])


def _all_digits() -> list[str]:
    """All texts of three digits in an order that is always the same."""
    digits = [f"{number:03}" for number in range(1000)]
    random.Random(0).shuffle(digits)
    return digits


def shift_task(digits: str, wrong: float = WRONG) -> Task:
    """The task to add 1 to each digit, modulo 10.

    Args:
        digits: The digits.
        wrong: Frequency of random digits in the demonstration.

    >>> task = shift_task("395", wrong=0.0)
    >>> task.prompt, task.reference_answer, task.columns["completion"]
    ('395=', '406', '406')
    """
    rng = random.Random(digits)
    answer = "".join(str((int(digit) + 1) % 10) for digit in digits)
    shown = "".join(str(rng.randrange(10)) if rng.random() < wrong else x for x in answer)
    prompt = f"{digits}="
    return Task(prompt, prompt, reference_answer=answer, columns={"completion": shown})


def correct(task: Task, rollout: Rollout) -> float:
    """1 if the answer is the reference answer and has ended, else 0."""
    return float(not rollout.truncated and rollout.text.strip() == str(task.reference_answer))


def unfinished(task: Task, rollout: Rollout) -> float:
    """1 if the answer was cut off before its end token, else 0."""
    return float(rollout.truncated)


def base_recipe(model: str) -> Recipe:
    """Policy, environment and tasks that all stages share.

    Args:
        model: Folder of the untrained model.
    """
    return Recipe(
        policy=CausalLM(model, max_new_tokens=6, tokens_per_microbatch=8192),
        env=SingleTurn((RewardTerm("correct", FunctionReward(correct)),)),
        tasks=FromFunction(training_tasks),
        eval_tasks=FromFunction(held_out_tasks),
        prompts_per_step=32,
        save_every=1000,
        evaluation=Evaluation(attempts=4, every=0, success=SuccessCriterion("correct")),
    )


def save_model(folder: Path, seed: int = 0) -> Path:
    """Save an untrained model of 50,000 parameters, whose tokens are characters, to a folder.

    Args:
        folder: The folder.
        seed: Seed of its weights.
    """
    ARCHITECTURE.save_untrained(folder, word_tokenizer(()), seed)
    return folder
