"""Strategies by prompt, each once on a small real model: capitals with four options.

python recipes/real/prompt_strategies.py FILE --model PATH      appends a line of each to FILE

The examples that `SimilarExamples` reads are questions about other countries. Eight tasks show that
a strategy runs to its end and what it costs. Which strategy is better is a question for `grupo eval
--strategy`.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from grupo.cli.strategy_option import SINGLE, parse_strategies
from grupo.core.answer_options import find_options
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.rewards import LocalModel, Overthinking
from grupo.rollouts.strategy_attempts import StrategyAttempts, attempt_tasks
from grupo.util.console import print_line
from grupo.util.event_loop import run_coroutine
from grupo.util.importing import load_module_file

TRAINING = load_module_file(Path(__file__).with_name("training.py"))
KNOWLEDGE = load_module_file(Path(__file__).with_name("knowledge_families.py"))
TASKS, EXAMPLES, MAX_NEW_TOKENS = 8, 40, 12
STRATEGIES = (
    SINGLE,
    "ShuffledOptions(4)",
    "SimilarExamples({examples!r}, 3, {form!r})",
    "SimilarExamples({examples!r}, 3, {form!r}, ShuffledOptions(4))",
    "LentThought(thought_tokens=16, think_start='', think_end=' So: ')",
    "AdaptiveGraph(layers=1, nodes=2, depth=1, thought_tokens=16)",
    "Analogies(count=2, thought_tokens=16)",
    "PromptVariants(extract={extract!r})",
)
FORM = "{prompt}\n{answer}\n\n"
EXTRACT = f"{Path(__file__)}:option_letter"


def option_letter(text: str) -> str | None:
    """The first capital A to D that stands alone.

    >>> option_letter("The answer is B) Lima."), option_letter("none")
    ('B', None)
    """
    words = (word.strip("().:,") for word in text.split())
    return next((word for word in words if word in tuple("ABCD")), None)


def is_right(task: Task, rollout: Rollout) -> float:
    """1 if the answer names the right option, by its letter or its text, and no other one."""
    options = find_options(str(task.columns["question"]))
    assert options is not None
    named = options.named(rollout.text.strip(), range(len(options.contents)))
    return float(named is not None and options.letter(named) == task.reference_answer)


def questions() -> Iterator[Mapping[str, Any]]:
    """Rows of questions about capitals with four options in a random order."""
    rng = Random(0)
    rows = list(KNOWLEDGE.countries(rng))
    for row in rows:
        others = [x["capital"] for x in rng.sample(rows, 8) if x["capital"] != row["capital"]]
        options = rng.sample([row["capital"], *others[:3]], 4)
        lines = "\n".join(f"{letter}) {x}" for letter, x in zip("ABCD", options, strict=True))
        question = f"What is the capital of {row['country']}?\n{lines}\nAnswer with the letter."
        yield {"prompt": question, "answer": "ABCD"[options.index(row["capital"])]}


def as_tasks(rows: Sequence[Mapping[str, Any]]) -> list[Task]:
    """Tasks of a chat with one message."""
    return [
        Task(
            row["prompt"],
            ({"role": "user", "content": row["prompt"]},),
            row["answer"],
            columns={"question": row["prompt"]},
        )
        for row in rows
    ]


def result_data(name: str, attempts: StrategyAttempts) -> dict[str, Any]:
    """How many tasks are solved, the tokens of an answer, and what was counted."""
    solved = attempts.solved(lambda rollout: rollout.reward > 0)
    return {
        "strategy": name,
        "tasks": solved.size,
        "solved": int(solved.sum()),
        "failed": len(attempts.errors),
        "tokens_per_answer": attempts.mean_tokens_per_attempt,
        "usage": dict(attempts.usage),
    }


def overthinking_data(
    tasks: Sequence[Task], rollouts: Sequence[Rollout], model: str
) -> dict[str, Any]:
    """How many answers the model scores readably, as a judge of overthinking."""
    judge = Overthinking(LocalModel(model, dtype="float32", max_tokens=12))
    values = [run_coroutine(judge(t, [r])) for t, r in zip(tasks, rollouts, strict=True)]
    scores = [value for (value,) in values if isinstance(value, float)]
    return {"judge": "Overthinking", "rollouts": len(rollouts), "scores": scores}


def main(
    file: Annotated[Path, typer.Argument(help="Receives a JSON line for each strategy.")],
    model: Annotated[str, typer.Option(help="Folder or name of a chat model.")] = TRAINING.MODEL,
) -> None:
    """Answer the tasks once with each strategy, and score the overthinking of single answers."""
    rows = list(questions())
    env = SingleTurn((RewardTerm("right", is_right),))
    policy = TRAINING.chat_model(model, MAX_NEW_TOKENS).build()
    tasks = as_tasks(rows[:TASKS])

    def write(data: Mapping[str, Any]) -> None:
        print_line(json.dumps(data))
        with file.open("a") as lines:
            lines.write(json.dumps(data) + "\n")

    with tempfile.TemporaryDirectory() as folder:
        examples = Path(folder) / "examples.jsonl"
        shown = rows[TASKS : TASKS + EXAMPLES]
        examples.write_text("".join(json.dumps(row) + "\n" for row in shown))
        values = {"examples": str(examples), "form": FORM, "extract": EXTRACT}
        for text in STRATEGIES:
            (strategy,) = parse_strategies([text.format(**values)]).values()
            attempts = attempt_tasks(policy, env, tasks, strategy, attempt_indices=range(1), key=0)
            write(result_data(text, attempts))
            if text == SINGLE:
                single = attempts.rollouts[0]
    write(overthinking_data(tasks, single, model))


if __name__ == "__main__":
    typer.run(main)
