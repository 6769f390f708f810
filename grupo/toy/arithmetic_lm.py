"""A toy language model, trained from scratch until it solves some of its arithmetic tasks."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable
from uuid import uuid4

from grupo.core.component import component
from grupo.core.types import Task
from grupo.core.units import RolloutSteps
from grupo.envs import RewardTerm, SingleTurn
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import AfterMarker, ReasoningGymVerifier
from grupo.tasks import ReasoningGym
from grupo.toy import worked_solutions
from grupo.toy.model_dir import model_dir_of
from grupo.toy.sft import sft_recipe
from grupo.toy.tokenizers import phrase_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.training.callbacks import Callback, NullCallback
from grupo.training.start import create_trainer
from grupo.util.errors import ConfigError
from grupo.util.run_files import SUMMARY_FILE


@component
class ToyArithmeticLM:
    """A small Llama, fine-tuned on worked solutions.

    The training stops once sampled answers solve `target_accuracy` of the evaluation tasks.

    Args:
        tasks: Training tasks.
        eval_tasks: Evaluation tasks.
        solve: Returns the worked solutions of a task.
        hidden_size: Size of the hidden state.
        num_layers: Number of layers.
        num_heads: Number of attention heads.
        intermediate_size: Hidden size of the feed-forward layers.
        context_length: Longest sequence in tokens.
        max_new_tokens: Longest answer in tokens.
        prompts_per_step: Tasks of a step.
        max_steps: Most steps.
        learning_rate: Peak learning rate.
        target_accuracy: Fraction of solved evaluation tasks that ends the training.
        eval_every: Rollout steps between two evaluations.
        seed: Seed of weights and training.
    """

    tasks: ReasoningGym
    eval_tasks: ReasoningGym
    solve: Callable[[Task], Sequence[str]] = worked_solutions.chain_sum_solutions
    hidden_size: int = 160
    num_layers: int = 3
    num_heads: int = 4
    intermediate_size: int = 512
    context_length: int = 256
    max_new_tokens: int = 64
    prompts_per_step: int = 48
    max_steps: int = 1200
    learning_rate: float = 2e-3
    target_accuracy: float = 0.35
    eval_every: RolloutSteps = 100
    seed: int = 0

    def recipe(self, model_path: Path) -> Recipe:
        """The recipe that trains the model, from the untrained one at `model_path`."""
        policy = CausalLM(
            str(model_path), max_new_tokens=self.max_new_tokens, tokens_per_microbatch=1200
        )
        extract = AfterMarker(worked_solutions.ANSWER_PREFIX.strip())
        correct = RewardTerm("correct", ReasoningGymVerifier(extract))
        return sft_recipe(self, policy, SingleTurn((correct,)), self.solve)

    def save_untrained(self, folder: Path) -> None:
        """Save an untrained model and its tokenizer for transformers."""
        tasks = self.tasks.load()
        sample = [tasks[i] for i in range(min(200, len(tasks)))]
        texts = (text for task in sample for text in (str(task.prompt), *self.solve(task)))
        tokenizer = phrase_tokenizer(texts)
        architecture = LlamaArchitecture(
            self.hidden_size,
            self.intermediate_size,
            self.num_layers,
            self.num_heads,
            self.context_length,
        )
        architecture.save_untrained(folder, tokenizer, self.seed)

    @property
    def model_dir(self) -> Path:
        """The folder of the trained model; equal specifications share it."""
        return model_dir_of(self, self.tasks.family)


@runtime_checkable
class ToyModel(Protocol):
    """A model specification that saves an untrained model and has a recipe to train it."""

    @property
    def model_dir(self) -> Path: ...

    def save_untrained(self, folder: Path) -> None: ...

    def recipe(self, model_path: Path) -> Recipe: ...


def ensure_trained(toy_model: ToyModel, callback: Callback = NullCallback()) -> Path:
    """The folder of the trained model; trains it first if it does not exist."""
    if not (toy_model.model_dir / "config.json").is_file():
        train_toy_model(toy_model, toy_model.model_dir, callback)
    return toy_model.model_dir


def train_toy_model(toy_model: ToyModel, folder: Path, callback: Callback = NullCallback()) -> Path:
    """Train the model and export it to `folder`, which appears once it is complete.

    Args:
        toy_model: Specification of the model.
        folder: Must be empty or missing.
        callback: Gets the progress of the training.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"out: {str(folder)!r} exists. Name another folder.")
    tmp = folder.with_name(f"tmp.{uuid4().hex[:8]}")
    try:
        toy_model.save_untrained(tmp / "start")
        recipe = toy_model.recipe(tmp / "start").replace(logged_groups=0)  # the run is deleted
        trainer = create_trainer(recipe, tmp / "run", callback)
        trainer()
        trainer.policy.export(tmp / "model")
        (tmp / "run" / SUMMARY_FILE).rename(tmp / "model" / "toy_model.json")
        (tmp / "model").rename(folder)
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    return folder
