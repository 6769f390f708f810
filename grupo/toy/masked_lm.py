"""A toy masked diffusion model, trained from scratch until it solves some of its tasks."""

from collections.abc import Sequence
from pathlib import Path

from transformers import BertConfig, BertForMaskedLM
from transformers.utils import logging

from grupo.core.component import component
from grupo.core.types import Task
from grupo.core.units import RolloutSteps
from grupo.envs import RewardTerm, SingleTurn
from grupo.models.masked.logp_estimators import CoupledEstimator
from grupo.models.masked.unmask_order import ConfidenceOrder
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch
from grupo.toy.model_dir import model_dir_of
from grupo.toy.sft import sft_recipe
from grupo.toy.tokenizers import END_TOKEN, phrase_tokenizer
from grupo.util.rng import make_rng, seed_torch

REVERSAL_ENV = SingleTurn((RewardTerm("correct", ExactMatch()),))


@component
class ReversalTasks:
    """Tasks to reverse random digits.

    Args:
        size: Number of tasks.
        num_digits: Digits of a prompt.
        seed: Seed of the digits.

    >>> task = ReversalTasks(size=1).load()[0]
    >>> task.prompt, task.reference_answer
    ('3805>', '5083')
    """

    size: int
    num_digits: int = 4
    seed: int = 0

    def load(self) -> Sequence[Task]:
        rng = make_rng(self.seed, "reversals", self.num_digits)
        texts = ["".join(rng.choices("0123456789", k=self.num_digits)) for _ in range(self.size)]
        return [Task(text, f"{text}>", text[::-1], "reversals") for text in texts]


def reference_solution(task: Task) -> Sequence[str]:
    """The reference answer as the only demonstration."""
    return [str(task.reference_answer)]


@component
class ToyMaskedLM:
    """A small BERT, fine-tuned to reverse digits by masked diffusion.

    The training stops once sampled answers solve `target_accuracy` of the evaluation tasks.

    Args:
        tasks: Training tasks.
        eval_tasks: Evaluation tasks.
        hidden_size: Size of the hidden state.
        num_layers: Number of layers.
        num_heads: Number of attention heads.
        prompts_per_step: Tasks of a step.
        max_steps: Most steps.
        learning_rate: Peak learning rate.
        target_accuracy: Fraction of solved evaluation tasks that ends the training.
        eval_every: Rollout steps between two evaluations.
        seed: Seed of weights and training.
    """

    tasks: ReversalTasks = ReversalTasks(4000, seed=1)
    eval_tasks: ReversalTasks = ReversalTasks(100, seed=2)
    hidden_size: int = 64
    num_layers: int = 2
    num_heads: int = 4
    prompts_per_step: int = 64
    max_steps: int = 600
    learning_rate: float = 1e-3
    target_accuracy: float = 0.3
    eval_every: RolloutSteps = 10
    seed: int = 0

    @property
    def max_new_tokens(self) -> int:
        """Tokens of an answer: its digits and an end token."""
        return self.tasks.num_digits + 1

    def recipe(self, model_path: Path) -> Recipe:
        """The recipe that trains the model: the likelihood of answers under random mask ratios."""
        policy = MaskedDiffusion(
            str(model_path),
            order=ConfidenceOrder(self.max_new_tokens),
            logp_estimator=CoupledEstimator(0.05, 0.95),
            max_new_tokens=self.max_new_tokens,
        )
        return sft_recipe(self, policy, REVERSAL_ENV, reference_solution)

    def save_untrained(self, folder: Path) -> None:
        """Save an untrained model and its tokenizer for transformers."""
        tokenizer = phrase_tokenizer(())
        tokenizer.add_special_tokens({"mask_token": "<mask>"})
        logging.disable_progress_bar()
        seed_torch(self.seed, "plant")
        end = tokenizer.get_vocab()[END_TOKEN]
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=self.hidden_size,
            intermediate_size=4 * self.hidden_size,
            num_hidden_layers=self.num_layers,
            num_attention_heads=self.num_heads,
            max_position_embeddings=32,
            pad_token_id=end,
        )
        BertForMaskedLM(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)

    @property
    def model_dir(self) -> Path:
        """The folder of the trained model; equal specifications share it."""
        return model_dir_of(self, "reversals")
