"""grupo eval, rollouts, doctor, export."""

import json
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from grupo.core.console import out, print_error, print_line

RunArgument = Annotated[Path, Argument(metavar="RUN", help="A run's folder.")]
JsonOption = Annotated[bool, Option("--json", help="As data.")]


def evaluate(
    arguments: Annotated[
        list[str] | None,
        Argument(metavar="RUN --FIELD VALUE", help="A run as it ended; or give --model."),
    ] = None,
    model: Annotated[str, Option(help="Folder or hub name of a model.")] = "",
    tasks: Annotated[str, Option(help="Where tasks come from; the held-out ones by default.")] = "",
    reward: Annotated[list[str] | None, Option(help="[name=]module:function, repeatable.")] = None,
    count: Annotated[int, Option(min=1, help="How many tasks at most.")] = 200,
    attempts: Annotated[int, Option(min=1, help="Sampled attempts a task.")] = 8,
    as_json: JsonOption = False,
) -> None:
    """Solve tasks: pass@1 to pass@k, with intervals."""
    from grupo.cli.eval_args import EvalArgs
    from grupo.report.tables import score_table

    score = EvalArgs(tuple(arguments or ()), model, tasks, tuple(reward or ()))(count, attempts)
    print_line(json.dumps(score.to_data())) if as_json else out.print(score_table(score))
    if score.num_failed:
        print_error(
            f"Warning: a reward failed for {score.num_failed} rollouts; they solved nothing."
        )


def rollouts(
    run: RunArgument,
    step: Annotated[int | None, Option(min=0, help="Of one step.")] = None,
    best: Annotated[int | None, Option(min=0, help="So many with the highest rewards.")] = None,
    worst: Annotated[int | None, Option(min=0, help="So many with the lowest rewards.")] = None,
    min_reward: Annotated[float | None, Option(help="Rewards from here.")] = None,
    max_reward: Annotated[float | None, Option(help="Rewards up to here.")] = None,
    contains: Annotated[str, Option(help="Text that the rollout says.")] = "",
    task: Annotated[str, Option(help="First letters of a task's key.")] = "",
    failed: Annotated[bool, Option("--failed", help="Those that could not be judged.")] = False,
    limit: Annotated[int, Option(min=1, help="How many.")] = 10,
    parquet: Annotated[str, Option(metavar="FILE", help="All of them, as a table.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Read a run's rollouts."""
    from grupo.report.rollouts import RolloutFilter, format_rollouts, select_rollouts

    wanted = RolloutFilter(step, min_reward, max_reward, contains, task, failed)
    if parquet:
        from grupo.report.parquet import write_parquet

        return print_line(f"{write_parquet(run, Path(parquet), wanted)} rollouts are in {parquet}")
    found = select_rollouts(run, wanted, best=best, worst=worst, limit=limit)
    print_line(json.dumps(found)) if as_json else out.print(format_rollouts(found))


def doctor(run: RunArgument, as_json: JsonOption = False) -> None:
    """What is wrong with a run, in words, and what to try."""
    from dataclasses import asdict

    from grupo.report.doctor import examine, format_findings

    findings = examine(run)
    print_line(json.dumps([asdict(f) for f in findings])) if as_json else out.print(
        format_findings(findings)
    )


def export(
    run: RunArgument,
    folder: Annotated[Path, Argument(metavar="FOLDER", help="The new folder.")],
    separate_adapters: Annotated[
        bool, Option("--apart", help="Adapters apart, not merged.")
    ] = False,
) -> None:
    """Write the model as a folder that transformers loads."""
    from grupo.core.errors import ConfigError
    from grupo.training.trainer import load_policy

    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise ConfigError(f"to: {str(folder)!r} exists. Name another folder.")
    policy, _ = load_policy(run)
    policy.export(folder, merge=not separate_adapters)
    print_line(f"The model is in {folder}")
