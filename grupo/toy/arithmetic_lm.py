"""From nothing to a small language model that solves a share of its tasks."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable
from uuid import uuid4

from grupo.algo.advantages import identity
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL
from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.schedules import Cosine, Warmup
from grupo.core.serialization import to_data
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.models.base import PolicySpec
from grupo.recipe import Adam, EarlyStopping, Evaluation, Recipe
from grupo.rewards import AfterMarker, ReasoningGymVerifier
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.rollouts.samplers import DemonstrationSampler
from grupo.tasks import ReasoningGym
from grupo.toy import worked_solutions
from grupo.toy.tokenizers import phrase_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.training.callbacks import Callback, NullCallback
from grupo.training.trainer import create_trainer

if TYPE_CHECKING:
    from grupo.toy.masked_lm import ToyMaskedLM


@component
class ToyArithmeticLM:
    """A Llama of a few million parameters at most, and what it is taught: worked solutions.

    It is taught until it solves `share` of held-out tasks when sampling, at most `steps` steps.
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
    eval_every: int = 100
    seed: int = 0

    def recipe(self, model_path: Path) -> Recipe:
        """How it is taught."""
        policy = CausalLM(
            str(model_path), max_new_tokens=self.max_new_tokens, tokens_per_microbatch=1200
        )
        right = RewardTerm(
            "correct", ReasoningGymVerifier(AfterMarker(worked_solutions.ANSWER_PREFIX.strip()))
        )
        return sft_recipe(self, policy, SingleTurn((right,)), self.solve)

    def save_untrained(self, folder: Path) -> None:
        """An untrained model and its tokenizer, as transformers saves them."""
        tasks = self.tasks.load()
        some = [tasks[i] for i in range(min(200, len(tasks)))]
        tokenizer = phrase_tokenizer(text for t in some for text in (str(t.prompt), *self.solve(t)))
        size = LlamaArchitecture(
            self.hidden_size,
            self.intermediate_size,
            self.num_layers,
            self.num_heads,
            self.context_length,
        )
        size.save_untrained(folder, tokenizer, self.seed)

    @property
    def model_dir(self) -> Path:
        """Where this seedling's grown model is kept: equal seedlings share it."""
        return model_dir_of(self, self.tasks.family)


def sft_recipe(
    toy_model: "ToyArithmeticLM | ToyMaskedLM",
    policy: PolicySpec,
    env: SingleTurn,
    solve: Callable[[Task], Sequence[str]],
) -> Recipe:
    """Supervision is the same trainer: worked solutions as rollouts, a likelihood loss."""
    return Recipe(
        policy=policy,
        env=env,
        tasks=toy_model.tasks,
        eval_tasks=toy_model.eval_tasks,
        method=Method(
            sampler=DemonstrationSampler(solve),
            advantage=identity,
            loss=NLL(),
            aggregation=token_mean,
        ),
        max_steps=toy_model.max_steps,
        prompts_per_step=toy_model.prompts_per_step,
        learning_rate=Warmup(0.05, Cosine(toy_model.learning_rate, toy_model.learning_rate / 20)),
        optimizer=Adam(weight_decay=0.01),
        evaluation=Evaluation(2, toy_model.eval_every, SuccessCriterion("correct")),
        early_stopping=EarlyStopping(toy_model.target_accuracy),
        save_every=toy_model.max_steps,
        seed=toy_model.seed,
    )


@runtime_checkable
class ToyModel(Protocol):
    """Whatever can be planted, and taught by a recipe."""

    @property
    def model_dir(self) -> Path: ...

    def save_untrained(self, folder: Path) -> None: ...

    def recipe(self, model_path: Path) -> Recipe: ...


def model_dir_of(toy_model: object, family: str) -> Path:
    """The folder of a seedling's grown model, named by its family and by all its numbers."""
    text = json.dumps(to_data(toy_model), sort_keys=True)
    name = f"{family}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return Path(os.environ.get("GRUPO_HOME", ".grupo")) / "models" / name


def ensure_trained(toy_model: ToyModel, callback: Callback = NullCallback()) -> Path:
    """The folder of the grown model; grown now if nobody did before."""
    if not (toy_model.model_dir / "config.json").is_file():
        train_toy_model(toy_model, toy_model.model_dir, callback)
    return toy_model.model_dir


def train_toy_model(toy_model: ToyModel, folder: Path, callback: Callback = NullCallback()) -> Path:
    """Grow the model into `folder`, which appears when it is whole."""
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"out: {str(folder)!r} exists. Name another folder.")
    place = folder.with_name(f"tmp.{uuid4().hex[:8]}")
    try:
        toy_model.save_untrained(place / "start")
        recipe = toy_model.recipe(place / "start").replace(
            logged_groups=0
        )  # the run is thrown away
        trainer = create_trainer(recipe, place / "run", callback)
        trainer()
        trainer.policy.export(place / "model")
        (place / "run" / "summary.json").rename(place / "model" / "grown.json")
        (place / "model").rename(folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return folder
