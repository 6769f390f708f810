"""Sums with verbose solutions, which open_rs.py and fast_math.py train on."""

import random
from collections.abc import Sequence

from grupo.core.schedules import Cosine, Warmup
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch, InsideTag, TagFormat
from grupo.tasks import InMemoryTasks
from grupo.training.learner import Learner

SEEDS = 8
STEPS = 60
MAX_CHARS = 120
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
FORMAT = TagFormat()
CORRECT = ExactMatch(InsideTag("answer"))
FILLER = "let me check this again and go on"
SUMS = {f"{a}+{b}=": str((a + b) % 10) for a in range(10) for b in range(10)}
EASY = [prompt for prompt in SUMS if prompt[2] in "01"]
HARD = [prompt for prompt in SUMS if prompt[2] not in "01"]


def tasks(prompts: Sequence[str]) -> list[Task]:
    """The tasks of some sums."""
    return [Task(prompt, prompt, SUMS[prompt]) for prompt in prompts]


def demonstrate(task: Task) -> list[str]:
    """Four verbose solutions; three in ten are malformed or have a random answer, each."""
    rng = random.Random(str(task.prompt))
    return [_solution(str(task.prompt), str(task.reference_answer), rng) for _ in range(4)]


def _solution(prompt: str, answer: str, rng: random.Random) -> str:
    shown = answer if rng.random() >= 0.3 else rng.choice("0123456789")
    filler = " ".join([FILLER] * rng.randrange(4))
    text = f"<think>{prompt[0]} and {prompt[2]} {filler} is {shown}</think><answer>{shown}</answer>"
    return text if rng.random() >= 0.3 else text.replace("</think>", "")


def env(*length: RewardTerm) -> SingleTurn:
    """Format, the terms of an experiment, and correctness, measured only."""
    return SingleTurn((RewardTerm("format", FORMAT), *length, RewardTerm("correct", CORRECT, 0.0)))


ACCURACY = RewardTerm("accuracy", CORRECT)


def recipe(model: str, rewards: SingleTurn, prompts: Sequence[str], seed: int) -> Recipe:
    """Groups of 6, a KL penalty of 0.04, a warm-up, then a cosine to a tenth."""
    return Recipe(
        policy=CausalLM(model, max_new_tokens=40, tokens_per_microbatch=8192),
        env=rewards,
        tasks=InMemoryTasks(tasks(prompts)),
        eval_tasks=0,
        method=grpo(group_size=6, kl_coef=0.04),
        max_steps=STEPS,
        prompts_per_step=10,
        learning_rate=Warmup(0.1, Cosine(1e-3, 1e-4)),
        seed=seed,
    )


def curve(chosen: Recipe) -> dict[str, float]:
    """Accuracy on hard sums after a third of the steps and after all, with length and format."""
    learner = Learner(chosen)
    found: dict[str, float] = {}
    for step in range(1, STEPS + 1):
        learner.step()
        if step in (STEPS // 3, STEPS):
            means = mean_terms(learner.policy, chosen.env, tasks(HARD), seed=chosen.seed)
            end = "" if step == STEPS else "_early"
            found |= {f"{name}{end}": means[name] for name in ("correct", "length", "format")}
    return found
