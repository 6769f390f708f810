"""Trees of thoughts on puzzles with several solutions: the table of `docs/small_claims.md`.

The model was trained on incomplete answers in two styles, with and without a list of candidates
before the answer; the prompt chooses. `two_phases` is the recipe of ToTRL as a pipeline.

grupo train recipes/small_claims/tree_puzzles.py:PIPELINE --model MODEL --run runs/trees
"""

import json
import random
import tempfile
from pathlib import Path

import torch

from grupo.core.interfaces import TurnStrategy, single_response
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.tiny_lm import mean_terms, train_tiny_lm, trained
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.pipeline import Pipeline, Stage
from grupo.recipe import Evaluation, Recipe
from grupo.rewards import AfterThinking, InsideTag, SetOfSolutions
from grupo.rewards.base import FunctionReward
from grupo.rollouts.evaluate import HasActor
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.turns import ForcedStart
from grupo.tasks import TREE, InMemoryTasks, Prior, PriorStyle
from grupo.tasks.puzzles import alphametic_task, solve_alphametic

SEEDS = 8
STEPS = 80
MISSING = 0.15  # of the solutions in a demonstration
SUMS = [f"A+B={n}" for n in (2, 3, 4, 5, 6, 12, 13, 14, 15, 16, 17)]
DIFFERENCES = [f"A-B={n}" for n in (4, 5, 6, 7, 8, 9)]
PUZZLES = {str(alphametic_task(equation).prompt): equation for equation in (*SUMS, *DIFFERENCES)}
SOURCE = InMemoryTasks([alphametic_task(equation) for equation in PUZZLES.values()])
PLAIN = PriorStyle("think", "Answer at once.")
NO_THINK = "<think> </think>"
TAGS = ("<think>", "</think>", "<answer>", "</answer>", TREE.text, PLAIN.text, *PUZZLES)
EXTRACT = AfterThinking(InsideTag("answer"))


def candidates(task: Task, rollout: object) -> float:
    """Pairs of digits in the thoughts."""
    thoughts = str(getattr(rollout, "text", "")).partition("</think>")[0]
    return thoughts.count(" ok") + thoughts.count(" no")


ENV = SingleTurn(
    (
        RewardTerm("full", SetOfSolutions(extract=EXTRACT)),
        RewardTerm("part", SetOfSolutions(partial=0.5, extract=EXTRACT), 0.0),
        RewardTerm("candidates", FunctionReward(candidates), 0.0),
    )
)


def demonstrate(task: Task) -> list[str]:
    """Three answers in the style of the prompt, from which each solution is missing at times."""
    prompt = str(task.prompt)
    equation = next(eq for text, eq in PUZZLES.items() if prompt.endswith(text))
    rng = random.Random(prompt)
    style = TREE if prompt.startswith(TREE.text) else PLAIN
    return [_answer(equation, style, rng) for _ in range(6)]


def _answer(equation: str, style: PriorStyle, rng: random.Random) -> str:
    kept = [list(x) for x in solve_alphametic(equation) if rng.random() >= MISSING]
    answer = f"<answer>{json.dumps(kept)}</answer>"
    if style is PLAIN:
        return f"{NO_THINK}{answer}"
    wrong = [[rng.randrange(10), rng.randrange(10)] for _ in range(2)]
    steps = [(pair, "ok") for pair in kept] + [(pair, "no") for pair in wrong]
    text = " ".join(f"{a} {b} {verdict}" for (a, b), verdict in sorted(steps))
    return f"<think> {text}</think>{answer}"


def recipe(
    model: str, style: PriorStyle, seed: int, steps: int, turn: TurnStrategy = single_response
) -> Recipe:
    """GRPO on full sets of solutions behind a prior prompt."""
    return Recipe(
        policy=CausalLM(model, max_new_tokens=80, tokens_per_microbatch=8192),
        env=ENV,
        tasks=Prior(style, SOURCE),
        eval_tasks=0,
        method=grpo(kl_coef=0.0).replace(sampler=GroupSampler(8, turn)),
        max_steps=steps,
        prompts_per_step=8,
        learning_rate=5e-4,
        evaluation=Evaluation(turn_strategy=turn),
        seed=seed,
    )


def two_phases(model: str, seed: int, steps: int = STEPS) -> Pipeline:
    """The tree prompt without thoughts first, then with them: half of the steps each."""
    no_think = recipe(model, TREE, seed, steps // 2, ForcedStart(NO_THINK, train_text=False))
    return Pipeline(
        (Stage("no_think", no_think), Stage("think", recipe(model, TREE, seed, steps // 2)))
    )


PIPELINE = two_phases("model", seed=0)


def trained_in_phases(model: str, seed: int, folder: Path) -> HasActor:
    """The policy after both phases, by the stages' recipes."""
    first, second = two_phases(model, seed).stages
    trained(first.recipe).policy.export(folder)
    policy = CausalLM(str(folder), max_new_tokens=80, tokens_per_microbatch=8192)
    return trained(second.recipe.replace(policy=policy)).policy


def main() -> None:
    """Train the model, then each arm with all seeds; print the table."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shown = [task for style in (TREE, PLAIN) for task in Prior(style, SOURCE).load()]
        model = str(train_tiny_lm(folder, shown, demonstrate, steps=500, tags=TAGS))
        tree, plain = (list(Prior(style, SOURCE).load()) for style in (TREE, PLAIN))
        start = recipe(model, PLAIN, 0, STEPS).policy.build()
        runs: dict[str, list[dict[str, float]]] = {}

        def add(arm: str, policy: HasActor, tasks: list[Task], seed: int) -> None:
            runs.setdefault(arm, []).append(mean_terms(policy, ENV, tasks, seed=seed))

        for seed in range(SEEDS):
            add("untrained, plain prompt", start, plain, seed)
            add("untrained, tree prompt", start, tree, seed)
            add("plain prompt", trained(recipe(model, PLAIN, seed, STEPS)).policy, plain, seed)
            add("tree prompt", trained(recipe(model, TREE, seed, STEPS)).policy, tree, seed)
            phases = trained_in_phases(model, seed, folder / str(seed))
            add("tree prompt, two phases", phases, tree, seed)
    print(paired_table(runs, ["full", "part", "candidates", "length"], "plain prompt"))


if __name__ == "__main__":
    main()
