"""grupo eval, rollouts, doctor, export."""

import json
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from grupo.cli.console import out, say

Run = Annotated[Path, Argument(help="A run's folder.")]
Json = Annotated[bool, Option("--json", help="As data.")]


def evaluate(
    words: Annotated[
        list[str] | None,
        Argument(metavar="[RUN] [--FIELD VALUE]…", help="A run as it ended; or give --model."),
    ] = None,
    model: Annotated[str, Option(help="Folder or hub name of a model.")] = "",
    tasks: Annotated[str, Option(help="Where tasks come from; the held-out ones by default.")] = "",
    reward: Annotated[list[str] | None, Option(help="[name=]module:function, repeatable.")] = None,
    count: Annotated[int, Option(help="How many tasks at most.")] = 200,
    attempts: Annotated[int, Option(help="Sampled attempts a task.")] = 8,
    as_json: Json = False,
) -> None:
    """Solve tasks greedily and by sampling: pass@1 to pass@k with 95 % intervals."""
    from grupo.cli.choosing import Choice, recipe_and_fields
    from grupo.evaluate import evaluate as measure
    from grupo.report.tables import one_score
    from grupo.tasks import named, split
    from grupo.train import policy_of

    run, fields = recipe_and_fields(words or ())
    chosen = Choice(model=model, rewards=tuple(reward or ()), fields=fields)()
    policy, recipe = policy_of(Path(run)) if run else (chosen.policy.build(), chosen)
    held_out = split(recipe.tasks, recipe.held_out, recipe.seed)[1]
    asked = named(tasks).load() if tasks else held_out
    some = [asked[i] for i in range(min(count, len(asked)))]
    score = measure(
        policy,
        recipe.env,
        some,
        attempts=attempts,
        solved=recipe.evaluation.solved,
        key=recipe.seed,
    )
    say(json.dumps(score.to_data())) if as_json else out.print(one_score(score))


def rollouts(
    run: Run,
    step: Annotated[int | None, Option(help="Of one step.")] = None,
    best: Annotated[int | None, Option(help="So many with the highest rewards.")] = None,
    worst: Annotated[int | None, Option(help="So many with the lowest rewards.")] = None,
    at_least: Annotated[float | None, Option(help="Rewards from here.")] = None,
    at_most: Annotated[float | None, Option(help="Rewards up to here.")] = None,
    contains: Annotated[str | None, Option(help="Text that the rollout says.")] = None,
    task: Annotated[str | None, Option(help="First letters of a task's key.")] = None,
    failed: Annotated[bool, Option("--failed", help="Those that could not be judged.")] = False,
    limit: Annotated[int, Option(help="How many.")] = 10,
    as_json: Json = False,
) -> None:
    """Read a run's rollouts."""
    from grupo.report.rollouts import select, show

    found = select(
        run,
        step=step,
        best=best,
        worst=worst,
        min_reward=at_least,
        max_reward=at_most,
        contains=contains,
        task=task,
        failed=failed,
        limit=limit,
    )
    say(json.dumps(found)) if as_json else out.print(show(found))


def doctor(run: Run, as_json: Json = False) -> None:
    """What is wrong with a run, in words, and what to try."""
    from dataclasses import asdict

    from grupo.report.doctor import examine, show

    findings = examine(run)
    say(json.dumps([asdict(f) for f in findings])) if as_json else out.print(show(findings))


def export(
    run: Run,
    to: Annotated[Path, Argument(help="The new folder.")],
    apart: Annotated[bool, Option("--apart", help="Adapters apart, not merged.")] = False,
) -> None:
    """Write the trained model as a folder that transformers loads."""
    from grupo.errors import Refused
    from grupo.train import policy_of

    if to.exists() and any(to.iterdir()):
        raise Refused(f"to: {str(to)!r} exists. Name another folder.")
    policy, _ = policy_of(run)
    policy.export(to, merge=not apart)
    say(f"The model is in {to}")
