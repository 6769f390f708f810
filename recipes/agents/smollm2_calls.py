"""SmolLM2-135M-Instruct calls tools in several formats, untrained: the table of docs/agents.md.

python -m grupo.models.pretrained
python recipes/agents/smollm2_calls.py
"""

from collections import Counter
from pathlib import Path
from random import Random

from grupo import CausalLM, Recipe
from grupo.config.tool_formats import with_tool_formats
from grupo.core.types import Rollout, Task
from grupo.envs import MultiTurn, RewardTerm
from grupo.envs.tools import Toolbox
from grupo.rollouts.evaluate import run_rollouts

TEMPLATE = Path(__file__).with_name("smollm2_tools.jinja")
TASKS = 20
CALLS = {
    "tool_calls": "ran",
    "arguments": "unfit arguments",
    "unknown": "unknown tool",
    "malformed": "malformed",
}
WORDS = ("garden", "window", "mountain", "paper", "elephant", "bridge", "kitchen", "violin")


def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


def multiply(a: int, b: int) -> int:
    """The product of two numbers."""
    return a * b


def count_letters(word: str) -> int:
    """The number of letters of a word."""
    return len(word)


def contains_answer(task: Task, rollout: Rollout) -> float:
    """1 if the last turn contains the answer, else 0."""
    return float(str(task.reference_answer) in rollout.turns[-1][1].text)


def questions() -> list[dict[str, str]]:
    """Questions of which each needs one call, as rows of a table."""
    rng = Random(0)
    rows = []
    for _ in range(TASKS):
        a, b, word = rng.randint(12, 99), rng.randint(12, 99), rng.choice(WORDS)
        choices = (
            (f"What is {a} + {b}?", a + b),
            (f"What is {a} * {b}?", a * b),
            (f"How many letters does the word {word} have?", len(word)),
        )
        question, answer = rng.choice(choices)
        rows.append({"prompt": question, "answer": str(answer)})
    return rows


def recipe_of(tool_format: str, chat_template: str = "") -> Recipe:
    """The recipe with a format of calls, by name, and a file of a chat template, if any."""
    toolbox = Toolbox((add, multiply, count_letters), format=tool_format)
    policy = CausalLM(
        "smollm2",
        max_new_tokens=48,
        apply_chat_template=True,
        chat_template=chat_template,
        stop_strings=toolbox.stop_strings,
    )
    env = MultiTurn(toolbox, (RewardTerm("correct", contains_answer),), max_turns=2)
    return with_tool_formats(Recipe(policy, env, questions()))


def outcomes(recipe: Recipe) -> Counter[str]:
    """The number of calls by outcome, of rollouts without any, and of correct ones."""
    policy = recipe.policy.build()
    policy.sync_weights(policy.weight_sync.snapshot(), 0)
    counts = Counter[str]()
    for group in run_rollouts(policy.actor(0), recipe.env, recipe.tasks.load(), 1):
        (rollout,) = group.rollouts
        assert not rollout.error, rollout.error
        terms = rollout.reward_terms
        calls = {name: terms.get(term, 0) for term, name in CALLS.items()}
        counts.update({name: round(number) for name, number in calls.items()})
        counts["no call"] += not any(calls.values())
        counts["correct"] += terms["correct"] > 0
    policy.weight_sync.close()
    return counts


def main() -> None:
    """Print the table, one row for each format."""
    columns = (*CALLS.values(), "no call", "correct")
    print(f"| format | described by | {' | '.join(columns)} |")
    print("|---|---|" + "---|" * len(columns))
    formats = (
        ("auto", str(TEMPLATE)),
        *((f, "") for f in ("auto", "llama", "pythonic", "gemma", "react")),
    )
    for tool_format, template in formats:
        recipe = recipe_of(tool_format, template)
        toolbox = recipe.env.env_factory
        counts = outcomes(recipe)
        numbers = " | ".join(str(counts[column]) for column in columns)
        print(f"| `{toolbox.format}` | {toolbox.described_by} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
