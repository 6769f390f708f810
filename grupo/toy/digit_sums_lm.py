"""A toy language model that is trained on solutions of `DigitSums` with mistakes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from grupo.core.component import component
from grupo.core.ranges import NonNegativeInt, PositiveFloat, PositiveInt, Probability
from grupo.core.types import Rollout, Task
from grupo.core.units import RolloutSteps
from grupo.envs import RewardTerm, SingleTurn
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import AfterMarker, ExactMatch
from grupo.rewards.base import PerRolloutReward
from grupo.tasks.base import TaskSource
from grupo.tasks.digit_sums import (
    ANSWER,
    STYLES,
    DigitSums,
    Terms,
    add_digits,
    worked_solution,
)
from grupo.toy.model_dir import model_dir_of
from grupo.toy.sft import sft_recipe
from grupo.toy.tokenizers import word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.util.rng import make_rng

LAST_DIGIT = SingleTurn((RewardTerm("correct", ExactMatch(AfterMarker(ANSWER))),))


@component
class SolutionsWithMistakes:
    """A worked solution in which later digits are mostly not added.

    The first additions, and those that the prompt gives, are right. The total that a digit was not
    added to is repeated, and what follows builds on it. The mistake is the likeliest text, so that
    a policy that is trained on it must discover the rare right ones.

    Args:
        careful_additions: Number of additions without mistakes.
        mistake_probability: Probability that a later digit is not added.
        styles: The styles of the solutions, one of which is drawn for each task.
    """

    careful_additions: NonNegativeInt = 3
    mistake_probability: Probability = 0.85
    styles: tuple[str, ...] = ("left",)

    def __call__(self, task: Task) -> Sequence[str]:
        return [self.draw(task, make_rng(0, "novice", task.key))]

    def draw(self, task: Task, rng: Random) -> str:
        """A solution with random mistakes.

        Args:
            task: Has the digits in the column `terms`.
            rng: Draws the style and the mistakes.
        """
        right = iter(range(max(self.careful_additions, task.columns["given"])))

        def add(a: int, b: int) -> int:
            is_wrong = next(right, None) is None and rng.random() < self.mistake_probability
            return a if is_wrong else add_digits(a, b)

        terms = task.columns["terms"]
        return worked_solution(terms, STYLES[rng.choice(self.styles)](terms), add)


@component
class CheckedWorking(PerRolloutReward):
    """1 for a worked solution of `DigitSums` without a mistake, in any order of the terms, else 0.

    >>> from grupo.core.types import Response
    >>> task = DigitSums(3, 3, size=1).load()[0]  # a6 b2 c2
    >>> texts = (": c2 a6T8 b2T0 is 0", ": a6 b2T9 c2T0 is 0", ": a6 b2T8 is 8", "is 0")
    >>> CheckedWorking()(task, [Rollout((("?", Response((), (), text=text)),)) for text in texts])
    [1.0, 0.0, 0.0, 0.0]
    """

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        return float(is_right_working(rollout.text, task.columns["terms"]))


def is_right_working(text: str, terms: Terms) -> bool:
    """Whether a text is a worked solution without a mistake, in any order of the terms.

    Args:
        text: The text.
        terms: Digits by their letter.
    """
    order = [word[0] for word in text.split()[1:-2]]
    return sorted(order) == sorted(terms) and text == worked_solution(terms, order)


@component
class ToyDigitSumsLM:
    """A small Llama, fine-tuned on solutions of sums of digits, by default of 3 to 10.

    Args:
        tasks: Training tasks.
        eval_tasks: Evaluation tasks.
        solve: Returns the demonstrations of a task.
        hidden_size: Size of the hidden state.
        num_layers: Number of layers.
        max_new_tokens: Longest answer in tokens.
        prompts_per_step: Tasks of a step.
        max_steps: Number of steps.
        learning_rate: Peak learning rate.
        target_accuracy: Fraction of solved evaluation tasks that ends the training; above 1: off.
        eval_every: Rollout steps between two evaluations.
        seed: Seed of weights and training.
    """

    tasks: TaskSource = DigitSums(size=50_000, seed=500, hint_share=0.25)
    eval_tasks: TaskSource = DigitSums(size=200, seed=501)
    solve: Callable[[Task], Sequence[str]] = SolutionsWithMistakes()
    hidden_size: PositiveInt = 64
    num_layers: PositiveInt = 2
    max_new_tokens: PositiveInt = 64
    prompts_per_step: PositiveInt = 64
    max_steps: PositiveInt = 1600
    learning_rate: PositiveFloat = 2e-3
    target_accuracy: float = 1.1
    eval_every: RolloutSteps = 10_000
    seed: int = 0

    def recipe(self, model_path: Path) -> Recipe:
        """The recipe that trains the model, from the untrained one at `model_path`."""
        policy = CausalLM(
            str(model_path), max_new_tokens=self.max_new_tokens, tokens_per_microbatch=8192
        )
        return sft_recipe(self, policy, LAST_DIGIT, self.solve)

    def save_untrained(self, folder: Path) -> None:
        """Save an untrained model and its tokenizer for transformers."""
        texts = [ANSWER]
        architecture = LlamaArchitecture(
            self.hidden_size, 3 * self.hidden_size, self.num_layers, initializer_range=0.08
        )
        architecture.save_untrained(folder, word_tokenizer(texts), self.seed)

    @property
    def model_dir(self) -> Path:
        """The folder of the trained model; equal specifications share it."""
        return model_dir_of(self, "digit_sums")
