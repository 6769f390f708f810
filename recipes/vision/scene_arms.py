"""Arms of the rows of `docs/vision_shown/landed_methods.md`, in the world of described scenes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from described_scenes import TAGS, Consistent, DescribedExamples, DescribedScenes

from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.evidence.claims.vision_arms import vision_policy, vision_recipe
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.models.base import AuxModel
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch, InsideTag
from grupo.rewards.listener import ListenerProbability
from grupo.rollouts.evaluate import HasActor
from grupo.toy.vision_lm import ToyVisionLM, ensure_trained_vision
from grupo.training.learner import Learner

STEPS = 40
FIRST_EPOCH = 16  # steps
GROUP_SIZE = 8
CORRECT = RewardTerm("correct", ExactMatch(InsideTag("answer")))
MODEL = ToyVisionLM(DescribedExamples(), tags=TAGS)
LISTENER = replace(MODEL, seed=1)
MAX_NEW_TOKENS = 20
ENV = SingleTurn((CORRECT,))
GRPO = grpo(group_size=GROUP_SIZE, kl_coef=0.0)
HELD_OUT = DescribedScenes(200, seed=900_000_000)
BLIND = DescribedScenes(200, seed=900_000_000, blind=True)


def scene_recipe(
    method: Method,
    seed: int,
    *,
    env: SingleTurn = ENV,
    model: ToyVisionLM = MODEL,
    aux_models: Sequence[AuxModel] = (),
    max_new_tokens: int = MAX_NEW_TOKENS,
) -> Recipe:
    """Train on 512 questions about scenes.

    Args:
        method: The method.
        seed: Seed of the run.
        env: Scores the answers.
        model: The beginner.
        aux_models: Further models whose signals the method reads.
        max_new_tokens: Longest answer in tokens.
    """
    ensure_trained_vision(model)
    recipe = vision_recipe(
        model,
        env,
        DescribedScenes(),
        method,
        steps=STEPS,
        seed=seed,
        max_new_tokens=max_new_tokens,
    )
    return recipe.replace(aux_models=tuple(aux_models))


def listener_term(weight: float = 0.0) -> RewardTerm:
    """The probability of the true option under another toy model, after the reasoning.

    Args:
        weight: Weight in the reward.
    """
    ensure_trained_vision(LISTENER)
    return RewardTerm(
        "listener", ListenerProbability(vision_policy(LISTENER, MAX_NEW_TOKENS)), weight
    )


def evaluated(policy: HasActor, seed: int) -> Metrics:
    """Means over held-out questions, and the accuracy with noise in place of the pictures."""
    env = SingleTurn((CORRECT, RewardTerm("consistent", Consistent()), listener_term()))
    seen = mean_terms(policy, env, HELD_OUT.load(), attempts=4, seed=seed)
    blind = mean_terms(policy, ENV, BLIND.load(), attempts=1, seed=seed)
    return {
        "accuracy": seen["correct"],
        "blind": blind["correct"],
        "consistent": seen["consistent"],
        "listener": seen["listener"],
        "agrees": seen["listener/agrees"],
        "length": seen["length"],
    }


def beginner(seed: int) -> Metrics:
    """Metrics of the model before RL."""
    ensure_trained_vision(MODEL)
    return evaluated(vision_policy(MODEL, MAX_NEW_TOKENS).build(), seed)


def arm(recipe: Callable[[int], Recipe]) -> Callable[[int], Metrics]:
    """Trains a recipe with a seed and returns the metrics of the policy.

    `informative` is the share of groups with different rewards, once every task was drawn.
    """

    def run(seed: int) -> Metrics:
        learner = Learner(recipe(seed))
        steps = [learner.step().metrics["groups/nonzero_std_frac"] for _ in range(STEPS)]
        return {**evaluated(learner.policy, seed), "informative": fmean(steps[FIRST_EPOCH:])}

    return run


SHARED: Mapping[str, Callable[[int], Metrics]] = {
    "beginner": beginner,
    "GRPO": arm(lambda seed: scene_recipe(GRPO, seed)),
}


def print_table(
    arms: Mapping[str, Callable[[int], Metrics]], metrics: Sequence[str], arguments: Sequence[str]
) -> None:
    """Run the shared arms and others, and print the table of those that have the metrics.

    Args:
        arms: Further arms by name.
        metrics: The metrics to show.
        arguments: The folder of stored runs, and perhaps the first seed and the end of the seeds.
    """
    folder, *seeds = arguments
    runs = stored_runs(
        Path(folder) / "runs.jsonl", {**SHARED, **arms}, range(*map(int, seeds or ["8"]))
    )
    shown = {name: rows for name, rows in runs.items() if all(m in rows[0] for m in metrics)}
    print(paired_table(shown, metrics, "GRPO"))
