"""Diverse roles: the table of `docs/small_claims.md`.

Every role has an answer of its own to each question; the prompt names the role that is asked.
"""

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.tiny_lm import mean_terms, train_tiny_lm, trained
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch, InsideTag, RegexMatch, RoleDiversity, TagFormat
from grupo.tasks import InMemoryTasks, as_task_source

SEEDS = 8
STEPS = 60
ROLES = ("nurse", "pilot", "baker", "clerk")
LABELS = ("yes", "no", "maybe")
SUBJECTS = [f"{thing} {time}" for thing in ("tea", "rain", "debt", "noise") for time in "abcde"]
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
FORMAT = TagFormat()


def label(subject: str, role: str) -> str:
    """The answer of a role to a question: synthetic respondents with a table of answers."""
    return random.Random(f"{subject} {role}").choice(LABELS)


TASKS = [
    Task(f"{subject} for {role} ? ", f"{subject} for {role} ? ", label(subject, role))
    for subject in SUBJECTS
    for role in ROLES
]


def demonstrate(task: Task) -> list[str]:
    """Four answers by one or two roles: three of ten malformed, two of five with a random label."""
    rng = random.Random(str(task.prompt))
    return [_answer(task, rng) for _ in range(4)]


def _answer(task: Task, rng: random.Random) -> str:
    subject, _, rest = str(task.prompt).partition(" for ")
    roles = rng.sample(ROLES, rng.choice((1, 2)))
    views = " ".join(f"{role} {label(subject, role)}" for role in roles)
    final = rng.choice(LABELS) if rng.random() < 0.4 else label(subject, rest[:-3])
    text = f"<think>{views}</think><answer>{final}</answer>"
    return text.replace("</think>", "") if rng.random() < 0.3 else text


def rewards(*diversity: RewardTerm) -> tuple[RewardTerm, ...]:
    """Correctness, 0.1 of the format, the diversity that is paid, and the one that is measured."""
    return (
        RewardTerm("correct", ExactMatch(InsideTag("answer"))),
        RewardTerm("format", FORMAT, 0.1),
        *diversity,
        RewardTerm("named", RoleDiversity(FORMAT), 0.0),
    )


ARMS = {
    "no diversity": rewards(),
    "diversity behind the format": rewards(RewardTerm("diversity", RoleDiversity(FORMAT), 0.2)),
    "diversity without a guard": rewards(
        RewardTerm("diversity", RoleDiversity(RegexMatch("")), 0.2)
    ),
}


def recipe(model: Path, terms: Sequence[RewardTerm], seed: int) -> Recipe:
    """GRPO with group size 8 on the questions."""
    rows = [
        {"prompt": task.prompt, "answer": task.reference_answer, "roles": list(ROLES)}
        for task in TASKS
    ]
    return Recipe(
        policy=CausalLM(str(model), max_new_tokens=40, tokens_per_microbatch=8192),
        env=SingleTurn(tuple(terms)),
        tasks=InMemoryTasks(rows),
        eval_tasks=0,
        method=grpo(kl_coef=0.0),
        max_steps=STEPS,
        prompts_per_step=8,
        learning_rate=5e-4,
        seed=seed,
    )


def main() -> None:
    """Train the model, then each arm with all seeds; print the table."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        model = train_tiny_lm(Path(folder), TASKS, demonstrate, steps=300, tags=TAGS)
        first = recipe(model, ARMS["no diversity"], 0)
        tasks = list(as_task_source(first.tasks).load())
        start = first.policy.build()
        runs = {
            "untrained": [mean_terms(start, first.env, tasks, seed=seed) for seed in range(SEEDS)]
        }
        for name, terms in ARMS.items():
            learners = (trained(recipe(model, terms, seed)) for seed in range(SEEDS))
            runs[name] = [
                mean_terms(learner.policy, first.env, tasks, seed=seed)
                for seed, learner in enumerate(learners)
            ]
    print(paired_table(runs, ["correct", "named/roles", "format", "length"], "no diversity"))


if __name__ == "__main__":
    main()
