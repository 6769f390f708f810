"""Over-optimised likelihoods on a small real model, measured on its own answers.

Shi et al., 2024, arXiv:2410.11677: when DPO goes too far, entropy and probability of the k
likeliest tokens of the policy's own answers fall, and then their quality. Adapters of SmolLM2 learn
from pairs of its own right and wrong answers to "which of two numbers is larger", at a learning
rate that is meant to go too far. After every second update, 24 answers to held-out tasks are
sampled, and their entropy, probability and correctness measured.

Fixed before the first run: the accuracy falls from its highest value by more than 10 points until
the end, and the alarm of `grupo doctor`, both numbers lower at three evaluations in a row, comes
before the last evaluation. One run is no conclusion. The same numbers on the pairs, of which
`grupo doctor` reads the metrics, are written beside them.

python recipes/real/over_optimised.py FILE --model PATH    # appends a line of each evaluation
python recipes/real/over_optimised.py FILE --table         # the table of the lines in FILE
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from grupo.algo.losses.top_tokens import TOP_SIGNALS, TopTokenMetrics
from grupo.core.types import Group, Task
from grupo.evidence.survey import TaskFamily
from grupo.methods.dpo import dpo
from grupo.models.lora import Lora
from grupo.pipeline import best_against_worst
from grupo.recipe import Recipe
from grupo.report.checks.over_optimisation import fall_together
from grupo.rollouts.evaluate import run_rollouts
from grupo.tasks import InMemoryTasks
from grupo.training.learner import Learner
from grupo.training.update.collate import collate
from grupo.training.update.signals import signals_of_all_rows
from grupo.util.console import print_line
from grupo.util.importing import load_module_file
from grupo.util.rng import derive_key

TRAINING = load_module_file(Path(__file__).with_name("training.py"))
FAMILY, SEED = "larger_number", 0
PAIRED_TASKS, ATTEMPTS = 24, 6
TESTED_TASKS, TESTED_ATTEMPTS = 12, 2
EVALUATIONS, STEPS_BETWEEN = 8, 2
NAMES = ("accuracy", "length", *TOP_SIGNALS)


def recipe(model: str) -> Recipe:
    """DPO with a small weight of the KL divergence and a high learning rate."""
    base = TRAINING.family_recipe(FAMILY, model)
    method = dpo(beta=0.05)
    return base.replace(
        policy=replace(base.policy, lora=Lora(rank=8, alpha=16.0), tokens_per_microbatch=1024),
        eval_tasks=0,
        method=method.replace(loss=method.loss + TopTokenMetrics()),
        max_steps=EVALUATIONS * STEPS_BETWEEN,
        prompts_per_step=4,
        learning_rate=1e-3,
    )


def pairs(chosen: Recipe, family: TaskFamily) -> list[Task]:
    """Tasks with a right and a wrong answer of the model."""
    actor = chosen.policy.build().actor(derive_key(SEED, "pairs"))
    tasks = TRAINING.trained(family).load()[:PAIRED_TASKS]
    groups = run_rollouts(actor, family.env, tasks, ATTEMPTS)
    return [
        replace(group.task, columns={**group.task.columns, **row})
        for group in groups
        for row in best_against_worst(group.rollouts, family.success)
    ]


def measured(learner: Learner, groups: Sequence[Group], family: TaskFamily) -> dict[str, float]:
    """Accuracy and length of answers, and entropy and probability of their likeliest tokens."""
    batch = collate(groups, learner.policy.encode)
    signals = signals_of_all_rows(learner.policy, learner.policy, batch, TOP_SIGNALS)
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    return {
        "accuracy": sum(map(family.success, rollouts)) / len(rollouts),
        "length": sum(rollout.length for rollout in rollouts) / len(rollouts),
        **{name: signals[name][batch.mask].mean().item() for name in TOP_SIGNALS},
    }


def evaluations(model: str) -> Iterator[dict[str, Any]]:
    """A line for each evaluation: of sampled answers, and of the pairs of the updates before it."""
    family, chosen = TRAINING.FAMILIES[FAMILY], recipe(model)
    learner = Learner(chosen.replace(tasks=InMemoryTasks(pairs(chosen, family))))
    tested = TRAINING.surveyed(family).load()[:TESTED_TASKS]
    given: Mapping[str, float] = {}
    for number in range(EVALUATIONS + 1):
        actor = learner.policy.actor(derive_key(SEED, "evaluation"))
        groups = run_rollouts(actor, family.env, tested, TESTED_ATTEMPTS)
        metrics = {f"pairs/{name}": given[f"policy/{name}"] for name in TOP_SIGNALS if given}
        yield {
            "step": learner.state.step,
            **measured(learner, groups, family),
            **metrics,
            "tokens": sum(actor.generated_tokens.values()),
        }
        for _ in range(STEPS_BETWEEN if number < EVALUATIONS else 0):
            given = learner.step().metrics


def first_alarm(lines: Sequence[Mapping[str, float]]) -> int | None:
    """The number of the evaluation of the first alarm; None if there is none.

    >>> falling = [{"entropy_top10": 1 - i, "mass_top10": 1 - i} for i in range(3)]
    >>> first_alarm(falling), first_alarm(falling[:2])
    (2, None)
    """
    for end in range(1, len(lines) + 1):
        entropy, mass = ([line[name] for line in lines[:end]] for name in TOP_SIGNALS)
        if fall_together(entropy, mass):
            return end - 1
    return None


def table(lines: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """The rows of the table, in Markdown, and the evaluation of the first alarm."""
    for line in lines:
        cells = " | ".join(f"{line[name]:.3g}" for name in NAMES)
        given = " | ".join(f"{line.get(f'pairs/{name}', float('nan')):.3g}" for name in TOP_SIGNALS)
        yield f"| {line['step']} | {cells} | {given} |".replace("nan", "")
    accuracy = [line["accuracy"] for line in lines]
    best = max(range(len(lines)), key=lambda i: (accuracy[i], i))
    yield (
        f"first alarm at evaluation {first_alarm(lines)}, highest accuracy at {best},"
        f" {100 * (accuracy[best] - accuracy[-1]):.0f} points above the last one"
    )


def main(
    file: Annotated[Path, typer.Argument(help="Has a JSON line for each evaluation.")],
    model: Annotated[str, typer.Option(help="Folder or name of a chat model.")] = TRAINING.MODEL,
    only_table: Annotated[bool, typer.Option("--table", help="Print the table alone.")] = False,
) -> None:
    """Train the adapters, and print the table."""
    if not only_table:
        for line in evaluations(model):
            with file.open("a") as appended:
                appended.write(json.dumps(line) + "\n")
    for row in table([json.loads(line) for line in file.read_text().splitlines()]):
        print_line(row)


if __name__ == "__main__":
    typer.run(main)
