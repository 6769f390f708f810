"""Ways to spend tokens on an answer, compared on a small real model.

python recipes/real/answer_time.py FILE --model PATH    appends a comparison of each family to FILE

FILE receives a JSON line for each family. `docs/answer_time.md` has the tables of
SmolLM2-135M-Instruct.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from grupo.cli.strategy_option import parse_strategies
from grupo.config.strategies import vote_extractor
from grupo.report.strategies import comparison_lines, strategy_table
from grupo.rollouts.strategy_comparison import compare_strategies
from grupo.util.console import out, print_line
from grupo.util.importing import load_module_file

TRAINING = load_module_file(Path(__file__).with_name("training.py"))
NAMES = ("larger_number", "claimed_sums")
TASKS, ATTEMPTS = 24, 2
STRATEGIES = (
    "single",
    "Vote(4, 'recipes/real/answers.py:{extract}')",
    "BestOf(4)",
    "Revised(most=1)",
    "Revised(most=2, stop='{{task}} An answer: {{answer}} Is it right? Reply yes or no.')",
)
EXTRACT = {"larger_number": "last_number", "claimed_sums": "yes_or_no"}


def compared(name: str, model: str) -> dict[str, Any]:
    """The comparison of all strategies on the first tasks of a family, which is also printed."""
    family = TRAINING.FAMILIES[name]
    texts = [text.format(extract=EXTRACT[name]) for text in STRATEGIES]
    strategies = parse_strategies(texts)
    policy = TRAINING.chat_model(model, family.max_new_tokens, family.stop_strings).build()
    comparison = compare_strategies(
        policy,
        family.env,
        TRAINING.surveyed(family).load()[:TASKS],
        strategies,
        rounds=ATTEMPTS,
        success=family.success,
        extract=vote_extractor(strategies.values(), family.env),
        key=0,
    )
    out.print(strategy_table(comparison))
    for line in comparison_lines(comparison):
        print_line(line)
    return {"family": name, **comparison.to_data()}


def main(
    file: Annotated[Path, typer.Argument(help="Receives a JSON line for each family.")],
    model: Annotated[str, typer.Option(help="Folder or name of a chat model.")] = TRAINING.MODEL,
) -> None:
    """Compare the strategies on each family."""
    for name in NAMES:
        with file.open("a") as lines:
            lines.write(json.dumps(compared(name, model)) + "\n")


if __name__ == "__main__":
    typer.run(main)
