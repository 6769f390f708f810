"""AIDSAFE: deliberation over a rule book, then SFT and DPO. Kumarage et al., arXiv:2505.21784.

The model complies with what it is asked for, whatever the rule, unless its prompt states the rule.
Deliberated answers are supervised demonstrations, and are then preferred to those from planted
beliefs. The rules are those of `rule_book.py`; `aidsafe_table.py` writes the table of
`docs/pipelines_shown.md`.

python recipes/pipelines/aidsafe.py       # writes the model that complies
grupo train recipes/pipelines/aidsafe.py:PIPELINE --run runs/aidsafe
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rule_book import (
    AGENTS,
    BELIEF_RATE,
    FREE,
    REFUSAL,
    STOP,
    TAGS,
    TESTED,
    TRAINED,
    obeyed,
    obeys,
    refuses,
    requests,
    violates,
)

from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.tiny_lm import train_tiny_lm
from grupo.methods.dpo import dpo
from grupo.methods.sft import sft
from grupo.models.causal_lm import CausalLM
from grupo.pipeline import CollectedTasks, CollectStage, Pipeline, Stage
from grupo.recipe import Evaluation, Recipe
from grupo.rewards import FunctionReward
from grupo.rollouts.samplers import Deliberation, drop_repeats
from grupo.tasks import FromFunction
from grupo.util.user_paths import models_dir

DISCUSS, ANSWER, PLANT = "| {rules} | {thoughts} | {agent} ", "| {rules} ", "| {belief} "
REWARDS = (
    RewardTerm("obeys", FunctionReward(obeys)),
    RewardTerm("violates", FunctionReward(violates), 0.0),
    RewardTerm("refuses", FunctionReward(refuses), 0.0),
)


def keep_rules(task: Task, thoughts: Sequence[str]) -> Sequence[str]:
    """Drop repeats, thoughts about other topics, and thoughts that contradict the rules."""
    return [x for x in drop_repeats(task, thoughts) if x == task.columns["rules"]]


SAMPLER = Deliberation(
    agents=AGENTS,
    stop=STOP,
    refine=keep_rules,
    discuss=DISCUSS,
    answer=ANSWER,
    plant=PLANT,
    separator=" , ",
)


def shown_tasks() -> list[Task]:
    """Requests as agents, answers and planted answers see them, and as they are."""
    found = []
    for task in requests():
        topic, rule = task.columns["topic"], task.columns["rules"]
        forms = {
            "plain": "",
            "agent": DISCUSS.format(rules=rule, thoughts="", agent=AGENTS[0]),
            "agent again": DISCUSS.format(rules=rule, thoughts=rule, agent=AGENTS[1]),
            "agent, later": DISCUSS.format(rules=rule, thoughts=rule, agent=AGENTS[0]),
            "ruled": ANSWER.format(rules=rule),
            "planted": PLANT.format(belief=task.columns["belief"]),
        }
        for form, text in forms.items():
            prompt = f"{task.prompt}{text}"
            columns = {**task.columns, "form": form, "topic": topic}
            found.append(Task(prompt, prompt, columns=columns))
    return found


def demonstrate(task: Task) -> list[str]:
    """Four demonstrations of a form of a request, some with errors."""
    rng = random.Random(f"demonstrations {task.prompt}")
    return [_demonstration(task, rng) for _ in range(4)]


def _demonstration(task: Task, rng: random.Random) -> str:
    form, words = task.columns["form"], task.columns["words"]
    rule, belief = task.columns["rules"], task.columns["belief"]
    if form.startswith("agent"):
        spoken = rule if form == "agent" or rng.random() < 0.2 else STOP
        return belief if rng.random() < 0.1 else spoken
    if form == "plain":
        return _reasoned(task, f"{task.columns['topic']} {FREE}", words)
    stated = rule if form == "ruled" else belief
    return _reasoned(task, stated if rng.random() < BELIEF_RATE else rule, words)


def _reasoned(task: Task, thought: str, words: Sequence[str]) -> str:
    _, _, rule = thought.partition(" ")
    return f"<think>{thought}</think>{obeyed(words, rule)}"


def trained_requests() -> Iterator[Task]:
    """The requests to train on."""
    return iter(TRAINED)


def tested_requests() -> Iterator[Task]:
    """The others."""
    return iter(TESTED)


def rows(
    rollouts: Sequence[Rollout], solves: Callable[[Rollout], bool]
) -> Sequence[Mapping[str, Any]]:
    """The deliberated answer as a demonstration, and as chosen over the planted one.

    Args:
        rollouts: The deliberated and the planted rollout of a request.
        solves: Whether a rollout obeys the rule; it is not read.
    """
    by_source = {rollout.source: rollout.text for rollout in rollouts}
    if len(by_source) < 2 or by_source["deliberated"] == by_source["planted"]:
        return []
    chosen, rejected = by_source["deliberated"], by_source["planted"]
    return [{"completion": chosen, "chosen": chosen, "rejected": rejected}]


def pipeline(model: str, seed: int = 0) -> Pipeline:
    """The deliberations, supervised training on them, and DPO with two learning rates.

    Args:
        model: Folder of the model that complies.
        seed: Seed of all stages.
    """
    base = Recipe(
        policy=CausalLM(model, max_new_tokens=12, tokens_per_microbatch=8192),
        env=SingleTurn(REWARDS),
        tasks=FromFunction(trained_requests),
        eval_tasks=FromFunction(tested_requests),
        prompts_per_step=32,
        save_every=1000,
        evaluation=Evaluation(attempts=1),
        seed=seed,
    )
    data = base.replace(tasks=CollectedTasks("deliberations"))
    prefer = data.replace(method=dpo(), max_steps=30)
    return Pipeline(
        (
            CollectStage("deliberations", base, rows=rows, sampler=SAMPLER),
            Stage("sft", data.replace(method=sft("completion"), max_steps=40, learning_rate=1e-3)),
            Stage("dpo", prefer.replace(learning_rate=2e-4), start="sft"),
            Stage("dpo_tenth", prefer.replace(learning_rate=2e-5), start="sft"),
        )
    )


def save_model(folder: Path, steps: int = 400) -> Path:
    """Train the model that complies, and return its folder."""
    tags = (*TAGS, REFUSAL)
    return train_tiny_lm(folder, shown_tasks(), demonstrate, steps=steps, tags=tags)


MODEL = models_dir() / "rule-book"
PIPELINE = pipeline(str(MODEL / "model"))

if __name__ == "__main__":
    save_model(MODEL)
