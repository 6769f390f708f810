"""Ways to spend tokens on an answer, compared on a small real model.

python recipes/real/answer_time.py FOLDER --model PATH    compares them on each family

Attempts are kept in FOLDER, a file for each family and strategy: a call that was stopped goes on
when it is repeated. `docs/answer_time.md` has the tables of SmolLM2-135M-Instruct.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import typer

from grupo.cli.strategy_option import parse_strategies
from grupo.config.strategies import vote_extractor
from grupo.core.interfaces import EnvSpec, TurnStrategy
from grupo.core.types import Task
from grupo.report.strategies import comparison_lines, strategy_table
from grupo.rollouts.evaluate import HasActor
from grupo.rollouts.strategy_attempts import StrategyAttempts, attempt_tasks
from grupo.rollouts.strategy_comparison import compare_strategies
from grupo.rollouts.strategy_results import StrategyComparison
from grupo.storage import rollout_json, strict_json
from grupo.storage.atomic_files import write_atomically
from grupo.util.console import out, print_line
from grupo.util.importing import load_module_file

TRAINING = load_module_file(Path(__file__).with_name("training.py"))
NAMES = ("larger_number", "claimed_sums")
TASKS, ATTEMPTS = 12, 1
STRATEGIES = (
    "single",
    "Vote(4, 'recipes/real/answers.py:{extract}')",
    "BestOf(4)",
    "Revised(max_revisions=1)",
    "Revised(max_revisions=2, stop_prompt='{{task}} An answer: {{answer}} Is it right? Reply yes or"
    " no.')",
)
EXTRACT = {"larger_number": "last_number", "claimed_sums": "yes_or_no"}


@dataclass(frozen=True)
class KeptAttempts:
    """`attempt_tasks` that keeps its results in files, and reads those that are there.

    Args:
        folder: The folder of a family's attempts.
    """

    folder: Path

    def __call__(
        self,
        policy: HasActor,
        env: EnvSpec,
        tasks: Sequence[Task],
        strategy: TurnStrategy,
        *,
        name: str,
        attempt_indices: range,
        **options: Any,
    ) -> StrategyAttempts:
        cell = f"{name} {attempt_indices} {[task.key for task in tasks]} {options['key']}"
        file = self.folder / f"{sha256(cell.encode()).hexdigest()[:16]}.json"
        if not file.exists():
            attempts = attempt_tasks(
                policy, env, tasks, strategy, name=name, attempt_indices=attempt_indices, **options
            )
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(file, strict_json.to_json({"cell": cell, **_to_data(attempts)}))
            print_line(f"{self.folder.name}: {name}, {attempts.num_attempts} answers are kept")
        return _from_data(strict_json.from_json(file.read_text()))


def _to_data(attempts: StrategyAttempts) -> dict[str, Any]:
    rollouts = [[rollout_json.to_data(rollout) for rollout in row] for row in attempts.rollouts]
    return {**vars(attempts), "rollouts": rollouts}


def _from_data(data: Mapping[str, Any]) -> StrategyAttempts:
    fields = {name: value for name, value in data.items() if name not in ("cell", "rollouts")}
    rows = data["rollouts"]
    return StrategyAttempts(
        tuple(tuple(map(rollout_json.from_data, row)) for row in rows), **fields
    )


def compared(name: str, model: str, folder: Path) -> StrategyComparison:
    """The comparison of all strategies on the first tasks of a family."""
    family = TRAINING.FAMILIES[name]
    strategies = parse_strategies([text.format(extract=EXTRACT[name]) for text in STRATEGIES])
    policy = TRAINING.chat_model(model, family.max_new_tokens, family.stop_strings).build()
    return compare_strategies(
        policy,
        family.env,
        TRAINING.surveyed(family).load()[:TASKS],
        strategies,
        attempts_per_task=ATTEMPTS,
        success=family.success,
        extract=vote_extractor(strategies.values(), family.env),
        key=0,
        make_attempts=KeptAttempts(folder / name),
    )


def main(
    folder: Annotated[Path, typer.Argument(help="Keeps the attempts and the comparisons.")],
    model: Annotated[str, typer.Option(help="Folder or name of a chat model.")] = TRAINING.MODEL,
    family: Annotated[list[str] | None, typer.Option(help="A family; by default all.")] = None,
) -> None:
    """Compare the strategies on each family, and print the tables."""
    for name in family or NAMES:
        comparison = compared(name, model, folder)
        out.print(strategy_table(comparison))
        for line in comparison_lines(comparison):
            print_line(line)
        (folder / f"{name}.json").write_text(json.dumps(comparison.to_data()))


if __name__ == "__main__":
    typer.run(main)
