"""grupo eval, rollouts, doctor, export."""

import json
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from grupo.core.console import complain, out, say

Run = Annotated[Path, Argument(metavar="RUN", help="A run's folder.")]
Json = Annotated[bool, Option("--json", help="As data.")]


def evaluate(
    words: Annotated[
        list[str] | None,
        Argument(metavar="RUN --FIELD VALUE", help="A run as it ended; or give --model."),
    ] = None,
    model: Annotated[str, Option(help="Folder or hub name of a model.")] = "",
    tasks: Annotated[str, Option(help="Where tasks come from; the held-out ones by default.")] = "",
    reward: Annotated[list[str] | None, Option(help="[name=]module:function, repeatable.")] = None,
    count: Annotated[int, Option(min=1, help="How many tasks at most.")] = 200,
    attempts: Annotated[int, Option(min=1, help="Sampled attempts a task.")] = 8,
    as_json: Json = False,
) -> None:
    """Solve tasks: pass@1 to pass@k, with intervals."""
    from grupo.cli.eval_args import Asked
    from grupo.report.tables import one_score

    score = Asked(tuple(words or ()), model, tasks, tuple(reward or ()))(count, attempts)
    say(json.dumps(score.to_data())) if as_json else out.print(one_score(score))
    if score.failed:
        complain(f"Warning: a reward failed for {score.failed} rollouts; they solved nothing.")


def rollouts(
    run: Run,
    step: Annotated[int | None, Option(min=0, help="Of one step.")] = None,
    best: Annotated[int | None, Option(min=0, help="So many with the highest rewards.")] = None,
    worst: Annotated[int | None, Option(min=0, help="So many with the lowest rewards.")] = None,
    at_least: Annotated[float | None, Option(help="Rewards from here.")] = None,
    at_most: Annotated[float | None, Option(help="Rewards up to here.")] = None,
    contains: Annotated[str, Option(help="Text that the rollout says.")] = "",
    task: Annotated[str, Option(help="First letters of a task's key.")] = "",
    failed: Annotated[bool, Option("--failed", help="Those that could not be judged.")] = False,
    limit: Annotated[int, Option(min=1, help="How many.")] = 10,
    parquet: Annotated[str, Option(metavar="FILE", help="All of them, as a table.")] = "",
    as_json: Json = False,
) -> None:
    """Read a run's rollouts."""
    from grupo.report.rollouts import Wanted, select, show

    wanted = Wanted(step, at_least, at_most, contains, task, failed)
    if parquet:
        from grupo.report.parquet import write

        return say(f"{write(run, Path(parquet), wanted)} rollouts are in {parquet}")
    found = select(run, wanted, best=best, worst=worst, limit=limit)
    say(json.dumps(found)) if as_json else out.print(show(found))


def doctor(run: Run, as_json: Json = False) -> None:
    """What is wrong with a run, in words, and what to try."""
    from dataclasses import asdict

    from grupo.report.doctor import examine, show

    findings = examine(run)
    say(json.dumps([asdict(f) for f in findings])) if as_json else out.print(show(findings))


def export(
    run: Run,
    to: Annotated[Path, Argument(metavar="FOLDER", help="The new folder.")],
    apart: Annotated[bool, Option("--apart", help="Adapters apart, not merged.")] = False,
) -> None:
    """Write the model as a folder that transformers loads."""
    from grupo.core.errors import Refused
    from grupo.training.trainer import policy_of

    if to.is_file() or (to.is_dir() and any(to.iterdir())):
        raise Refused(f"to: {str(to)!r} exists. Name another folder.")
    policy, _ = policy_of(run)
    policy.export(to, merge=not apart)
    say(f"The model is in {to}")
