"""Tiny language models for claims that need text: trained from demonstrations in seconds."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

from grupo.algo.advantages import identity
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL
from grupo.core.interfaces import EnvSpec, TurnStrategy, single_response
from grupo.core.schedules import Cosine, Warmup
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch
from grupo.rollouts.evaluate import HasActor, run_rollouts
from grupo.rollouts.samplers import DemonstrationSampler
from grupo.tasks import InMemoryTasks
from grupo.toy.tokenizers import word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.training.learner import Learner
from grupo.util.rng import derive_key

TINY = LlamaArchitecture(hidden_size=48, intermediate_size=96, num_layers=2, context_length=128)


def demonstration_recipe(
    model: Path,
    tasks: Sequence[Task],
    solve: Callable[[Task], Sequence[str]],
    *,
    steps: int,
    tasks_per_step: int = 32,
    seed: int = 0,
) -> Recipe:
    """Supervised fine-tuning on demonstrations.

    Args:
        model: The folder of the model.
        tasks: The tasks.
        solve: Returns the demonstrations of a task.
        steps: Number of steps.
        tasks_per_step: Number of tasks of a step.
        seed: Seed of the run.
    """
    return Recipe(
        policy=CausalLM(str(model), max_new_tokens=32, tokens_per_microbatch=8192),
        env=SingleTurn((RewardTerm("same", ExactMatch()),)),
        tasks=InMemoryTasks(tasks),
        eval_tasks=0,
        method=Method(
            sampler=DemonstrationSampler(solve),
            advantage=identity,
            loss=NLL(),
            aggregation=token_mean,
        ),
        max_steps=steps,
        prompts_per_step=tasks_per_step,
        learning_rate=Warmup(0.05, Cosine(5e-3, 5e-4)),
        seed=seed,
    )


def train_tiny_lm(
    folder: Path,
    tasks: Sequence[Task],
    solve: Callable[[Task], Sequence[str]],
    *,
    steps: int,
    tasks_per_step: int = 32,
    texts: Iterable[str] = (),
    tags: Iterable[str] = (),
) -> Path:
    """The folder of a model of 50,000 parameters, trained from random weights.

    Args:
        folder: An empty folder.
        tasks: The tasks.
        solve: Returns the demonstrations of a task.
        steps: Number of steps.
        tasks_per_step: Number of tasks of a step.
        texts: Texts whose words the tokenizer knows besides those of tasks and demonstrations.
        tags: Texts that are one token each.
    """
    own = [text for task in tasks for text in (str(task.prompt), *solve(task))]
    TINY.save_untrained(folder / "start", word_tokenizer([*own, *texts], tags))
    recipe = demonstration_recipe(
        folder / "start", tasks, solve, steps=steps, tasks_per_step=tasks_per_step
    )
    learner = trained(recipe)
    learner.policy.export(folder / "model")
    return folder / "model"


def trained(recipe: Recipe) -> Learner:
    """The learner after all steps of a recipe."""
    learner = Learner(recipe)
    for _ in range(recipe.max_steps):
        learner.step()
    return learner


def mean_terms(
    policy: HasActor,
    env: EnvSpec,
    tasks: Sequence[Task],
    *,
    attempts: int = 8,
    seed: int = 0,
    turn_strategy: TurnStrategy = single_response,
) -> dict[str, float]:
    """Means of `reward`, of the reward terms and of `length` over attempts at tasks.

    Args:
        policy: Generates the rollouts.
        env: Scores them.
        tasks: The tasks.
        attempts: Sampled rollouts per task.
        seed: Seed of the rollouts.
        turn_strategy: How the policy answers one observation.
    """
    actor = policy.actor(derive_key(seed, "claim"))
    groups = run_rollouts(actor, env, tasks, attempts, turn_strategy)
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    names = dict.fromkeys(name for rollout in rollouts for name in rollout.reward_terms)
    means = {name: fmean(r.reward_terms.get(name, 0.0) for r in rollouts) for name in names}
    return {
        "reward": fmean(rollout.reward for rollout in rollouts),
        "length": fmean(rollout.length for rollout in rollouts),
        **means,
    }
