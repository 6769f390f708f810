"""A reward model of sums, and GRPO that optimises it with the truth beside it.

A row has the right sum of two numbers and three wrong ones: a small error, one of the two numbers,
and the sum of other numbers. No model generated them. `RECIPE` trains a policy on the score of the
reward model in the folder `rm`; whether the last number of an answer is right has a weight of 0.
The policy's sums are none of the reward model's.

python recipes/real/judged_sums.py rows          # writes rows/judged.jsonl and rows/asked.jsonl
grupo train recipes/real/judged_sums.py:RECIPE --model PATH
"""

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from grupo import Adam, CausalLM, Evaluation, Recipe
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.grpo import grpo
from grupo.models.lora import Lora
from grupo.rewards import LearnedReward, NumberWithin
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.tasks import parse_task_source
from grupo.util.importing import load_module_file

ANSWERS = load_module_file(Path(__file__).with_name("answers.py"))
NUMBERS = range(10, 100)
ERRORS = (-10, -2, -1, 1, 2, 10)
QUESTION = "What is {} + {}? Answer with the number only."
JUDGED, QUESTIONS = "judged.jsonl", "asked.jsonl"
RECIPE = Recipe(
    policy=CausalLM("model", Lora(16), max_new_tokens=12, apply_chat_template=True),
    env=SingleTurn(
        (
            RewardTerm("liked", LearnedReward("rm")),
            RewardTerm("truth", NumberWithin(extract=ANSWERS.last_number), weight=0.0),
        )
    ),
    tasks=parse_task_source(f"rows/{QUESTIONS}"),
    eval_tasks=48,
    method=grpo(group_size=8, kl_coef=0.0),
    max_steps=30,
    prompts_per_step=8,
    learning_rate=3e-4,
    optimizer=Adam(),
    evaluation=Evaluation(attempts=1, success=SuccessCriterion("truth")),
)


def wrong_sums(a: int, b: int, rng: Random) -> list[str]:
    """Wrong sums of two numbers: a small error, one of the numbers, the sum of other numbers.

    >>> wrong_sums(40, 85, Random(0))
    ['127', '85', '147']
    """
    other = a + b
    while other == a + b:
        other = rng.choice(NUMBERS) + rng.choice(NUMBERS)
    wrong = (a + b + rng.choice(ERRORS), rng.choice((a, b)), other)
    return list(dict.fromkeys(map(str, wrong)))


def row(a: int, b: int, rng: Random) -> Mapping[str, Any]:
    """A question with its right answer and its wrong ones."""
    question, right = QUESTION.format(a, b), str(a + b)
    columns = {"prompt": [{"role": "user", "content": question}], "question": question}
    return {**columns, "answer": right, "chosen": right, "rejected": wrong_sums(a, b, rng)}


def main(
    folder: Annotated[Path, typer.Argument(help="Receives the tables.")],
    judged: Annotated[int, typer.Option(help="Number of rows for the reward model.")] = 2000,
    questions: Annotated[int, typer.Option(help="Number of questions for the policy.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the rows.")] = 0,
) -> None:
    """Write judged.jsonl, the rows of the reward model, and asked.jsonl, other questions."""
    rng = Random(seed)
    pairs = rng.sample(list(product(NUMBERS, NUMBERS)), judged + questions)
    rows = [row(a, b, rng) for a, b in pairs]
    unjudged = [{name: x[name] for name in ("prompt", "question", "answer")} for x in rows[judged:]]
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in ((JUDGED, rows[:judged]), (QUESTIONS, unjudged)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in table))


if __name__ == "__main__":
    typer.run(main)
