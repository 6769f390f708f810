"""Information that is stable over wordings: the table of `docs/small_claims.md`.

A persona in the prompt decides how many jobs the demonstrations recommend: two, four or six.
"""

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, pvariance

import torch

from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.tiny_lm import train_tiny_lm, trained
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import InformationConsistency
from grupo.rewards.information import word_entropy
from grupo.rewards.majority_vote import CrossPromptSimilarity, bleu
from grupo.rollouts.evaluate import HasActor, run_rollouts
from grupo.rollouts.samplers import ParaphraseSampler
from grupo.tasks import InMemoryTasks
from grupo.util.rng import derive_key

SEEDS = 8
STEPS = 60
JOBS = (
    "nurse",
    "pilot",
    "baker",
    "banker",
    "lawyer",
    "trader",
    "cook",
    "clerk",
    "driver",
    "tailor",
)
PERSONAS = {"student": 2, "parent": 4, "retiree": 6}  # with the number of jobs
TOPICS = [f"{place} {wish}" for place in ("town", "coast", "farm", "port") for wish in "abcde"]


def prompt(persona: str, topic: str) -> str:
    """The question of a persona."""
    return f"a {persona} asks: {topic} ? "


def demonstrate(task: Task) -> list[str]:
    """Four lists of different jobs, of the length of the persona."""
    persona = str(task.prompt).split()[1]
    rng = random.Random(str(task.prompt))
    return [" ".join(rng.sample(JOBS, PERSONAS[persona])) for _ in range(4)]


QUESTIONS = [[prompt(persona, topic) for persona in PERSONAS] for topic in TOPICS]
TASKS = [Task(prompts[0], prompts[0], columns={"paraphrases": prompts}) for prompts in QUESTIONS]
ARMS = {
    "helpfulness alone": (RewardTerm("information", InformationConsistency(stability_weight=0)),),
    "helpfulness and stability": (RewardTerm("information", InformationConsistency()),),
    "helpfulness and similarity": (
        RewardTerm("information", InformationConsistency(stability_weight=0)),
        RewardTerm("similarity", CrossPromptSimilarity(), 0.5),
    ),
}


def recipe(model: Path, rewards: Sequence[RewardTerm], seed: int) -> Recipe:
    """GRPO on groups of four answers to each of three wordings."""
    return Recipe(
        policy=CausalLM(str(model), max_new_tokens=12, tokens_per_microbatch=8192),
        env=SingleTurn(tuple(rewards)),
        tasks=InMemoryTasks(TASKS),
        eval_tasks=0,
        method=grpo(kl_coef=0.0).replace(sampler=ParaphraseSampler(4)),
        max_steps=STEPS,
        prompts_per_step=6,
        learning_rate=5e-4,
        seed=seed,
    )


def measured(policy: HasActor, seed: int) -> dict[str, float]:
    """Entropy of answers, its variance over wordings, and their similarity, by topic."""
    tasks = [Task(text, text) for prompts in QUESTIONS for text in prompts]
    env = SingleTurn(ARMS["helpfulness alone"])
    groups = run_rollouts(policy.actor(derive_key(seed, "measure")), env, tasks, 8)
    texts = [[rollout.text for rollout in group.rollouts] for group in groups]
    entropies = [fmean(map(word_entropy, answers)) for answers in texts]
    n = len(PERSONAS)
    topics = range(0, len(texts), n)
    return {
        "entropy": fmean(entropies),
        "entropy_variance": fmean(pvariance(entropies[i : i + n]) for i in topics),
        "similarity": fmean(
            bleu(a, b) for i in topics for a in texts[i] for b in (*texts[i + 1], *texts[i + 2])
        ),
    }


def main() -> None:
    """Train the model, then each arm with all seeds; print the table."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        shown = [Task(text, text) for prompts in QUESTIONS for text in prompts]
        model = train_tiny_lm(Path(folder), shown, demonstrate, steps=200)
        start = recipe(model, ARMS["helpfulness alone"], 0).policy.build()
        runs = {"untrained": [measured(start, seed) for seed in range(SEEDS)]}
        for name, rewards in ARMS.items():
            learners = (trained(recipe(model, rewards, seed)) for seed in range(SEEDS))
            runs[name] = [measured(learner.policy, seed) for seed, learner in enumerate(learners)]
    print(paired_table(runs, ["entropy", "entropy_variance", "similarity"], "untrained"))


if __name__ == "__main__":
    main()
