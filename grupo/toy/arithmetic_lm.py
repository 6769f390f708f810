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
from grupo.algo.losses import Likelihood
from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.schedules import Cosine, Warmup
from grupo.core.serialization import to_data
from grupo.core.types import Task
from grupo.envs import Part, SingleTurn
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.models.spec import Spec
from grupo.recipe import Adam, Evaluation, Recipe, Until
from grupo.rewards import After, GymVerifier
from grupo.rollouts.evaluate import Solved
from grupo.rollouts.samplers import Demonstrate
from grupo.tasks import ReasoningGym
from grupo.toy import worked_solutions
from grupo.toy.tokenizers import phrase_tokenizer
from grupo.toy.untrained_llama import Llama
from grupo.training.callbacks import Silent, Watcher
from grupo.training.trainer import begin

if TYPE_CHECKING:
    from grupo.toy.masked_lm import MaskedSeedling


@piece
class Seedling:
    """A Llama of a few million parameters at most, and what it is taught: worked solutions.

    It is taught until it solves `share` of held-out tasks when sampling, at most `steps` steps.
    """

    tasks: ReasoningGym
    held_out: ReasoningGym
    solve: Callable[[Task], Sequence[str]] = worked_solutions.chain_sum
    width: int = 160
    layers: int = 3
    heads: int = 4
    inner: int = 512
    context: int = 256
    limit: int = 64
    batch: int = 48
    steps: int = 1200
    lr: float = 2e-3
    share: float = 0.35
    check_every: int = 100
    seed: int = 0

    def recipe(self, start: Path) -> Recipe:
        """How it is taught."""
        policy = CausalLM(str(start), limit=self.limit, budget=1200)
        right = Part("correct", GymVerifier(After(worked_solutions.MARK.strip())))
        return lessons(self, policy, SingleTurn((right,)), self.solve)

    def plant(self, folder: Path) -> None:
        """An untrained model and its tokenizer, as transformers saves them."""
        tasks = self.tasks.load()
        some = [tasks[i] for i in range(min(200, len(tasks)))]
        tokenizer = phrase_tokenizer(text for t in some for text in (str(t.prompt), *self.solve(t)))
        size = Llama(self.width, self.inner, self.layers, self.heads, self.context)
        size.plant(folder, tokenizer, self.seed)

    @property
    def home(self) -> Path:
        """Where this seedling's grown model is kept: equal seedlings share it."""
        return home_of(self, self.tasks.family)


def lessons(
    seedling: "Seedling | MaskedSeedling",
    policy: Spec,
    env: SingleTurn,
    solve: Callable[[Task], Sequence[str]],
) -> Recipe:
    """Supervision is the same trainer: worked solutions as rollouts, a likelihood loss."""
    return Recipe(
        policy=policy,
        env=env,
        tasks=seedling.tasks,
        held_out=seedling.held_out,
        method=Method(
            sample=Demonstrate(solve), credit=identity, loss=Likelihood(), weigh=token_mean
        ),
        steps=seedling.steps,
        prompts=seedling.batch,
        lr=Warmup(0.05, Cosine(seedling.lr, seedling.lr / 20)),
        optimizer=Adam(decay=0.01),
        evaluation=Evaluation(2, seedling.check_every, Solved("correct")),
        until=Until(seedling.share),
        save_every=seedling.steps,
        seed=seedling.seed,
    )


@runtime_checkable
class Grown(Protocol):
    """Whatever can be planted, and taught by a recipe."""

    @property
    def home(self) -> Path: ...

    def plant(self, folder: Path) -> None: ...

    def recipe(self, start: Path) -> Recipe: ...


def home_of(seedling: object, family: str) -> Path:
    """The folder of a seedling's grown model, named by its family and by all its numbers."""
    text = json.dumps(to_data(seedling), sort_keys=True)
    name = f"{family}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return Path(os.environ.get("GRUPO_HOME", ".grupo")) / "models" / name


def ensure(seedling: Grown, watcher: Watcher = Silent()) -> Path:
    """The folder of the grown model; grown now if nobody did before."""
    if not (seedling.home / "config.json").is_file():
        grow(seedling, seedling.home, watcher)
    return seedling.home


def grow(seedling: Grown, folder: Path, watcher: Watcher = Silent()) -> Path:
    """Grow the model into `folder`, which appears when it is whole."""
    if folder.exists() and any(folder.iterdir()):
        raise Refused(f"out: {str(folder)!r} exists. Name another folder.")
    place = folder.with_name(f"tmp.{uuid4().hex[:8]}")
    try:
        seedling.plant(place / "start")
        recipe = seedling.recipe(place / "start").but(inspected=0)  # the run is thrown away
        trainer = begin(recipe, place / "run", watcher)
        trainer()
        trainer.policy.export(place / "model")
        (place / "run" / "summary.json").rename(place / "model" / "grown.json")
        (place / "model").rename(folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return folder
