"""The command `grupo survey`: how often a policy solves each task, as a Parquet file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from grupo.cli.options import RecipeArguments, RewardOption
from grupo.cli.paths import last_run, out_path
from grupo.util.console import out, print_error, print_line
from grupo.util.errors import ConfigError
from grupo.util.run_files import RECIPE_JSON

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from grupo.evidence.survey import TaskSurvey
    from grupo.models.base import Policy
    from grupo.recipe import Recipe

OutFile = Annotated[
    Path, Option("--out", parser=out_path, help="Parquet file to write, a row for each task.")
]


def survey(
    arguments: RecipeArguments = None,
    out_file: OutFile = Path("survey.parquet"),
    model: Annotated[str, Option(help="Folder, .gguf file or hub name of a model.")] = "",
    tasks: Annotated[str, Option(help="Source of the tasks; the training tasks by default.")] = "",
    reward: RewardOption = None,
    attempts: Annotated[int, Option(min=1, help="Sampled rollouts per task.")] = 8,
    count: Annotated[int, Option(min=0, help="Number of tasks at most; 0: all.")] = 0,
    checkpoint: Annotated[str, Option(help="Of a run: last, best or a step.")] = "last",
    history: Annotated[bool, Option("--history", help="Of a run: from its own rollouts.")] = False,
) -> None:
    """Attempt tasks several times and write pass rate, spread, lengths and entropy of each.

    The policy is that of a recipe before training, or of a run: `grupo survey runs/a`.
    """
    from grupo.cli.build_recipe import RecipeArgs
    from grupo.cli.fields import split_arguments
    from grupo.evidence.survey.parquet import check_new_file, write_survey
    from grupo.evidence.survey.table import survey_table

    check_new_file(out_file)
    address, fields = split_arguments(arguments or ())
    address = str(last_run(Path(address))) if address else address
    is_run = bool(address) and (Path(address) / RECIPE_JSON).is_file()
    if is_run and (model or fields):
        raise ConfigError(
            "run: a run is surveyed with its own policy. Leave out --model and the fields."
        )
    if history:
        _survey_history(Path(address), out_file, is_run)
        return
    if is_run:
        args = RecipeArgs(tasks=tasks, rewards=tuple(reward or ()))
        policy, recipe = _of_run(Path(address), checkpoint, args)
    else:
        args = RecipeArgs(address, "", model, tasks, "", tuple(reward or ()), fields)
        policy, recipe = _of_recipe(args)
    parts = _parts(policy, recipe, attempts, count)
    rows = write_survey(out_file, parts, _facts(recipe, attempts, address))
    out.print(survey_table(rows))
    print_line(f"The survey is in {out_file}")


def _survey_history(folder: Path, out_file: Path, is_run: bool) -> None:
    from grupo.evidence.survey import write_history_survey

    if not is_run:
        raise ConfigError(f"--history: {str(folder)!r} is no run. Name the folder of a run.")
    rows = write_history_survey(folder, out_file)
    print_line(f"The accuracies of {len(rows)} tasks in the run are in {out_file}")


def _of_run(folder: Path, checkpoint: str, args: Any) -> "tuple[Policy, Recipe]":
    from grupo.training.resume.load_run import load_policy

    policy, recipe = load_policy(folder, checkpoint)
    return policy, args.apply_to(recipe)


def _of_recipe(args: Any) -> "tuple[Policy, Recipe]":
    from grupo.cli.chosen_defaults import recipe_with_defaults
    from grupo.cli.displays import ensure_toy_model
    from grupo.config.validate import check_recipe
    from grupo.report.progress_bar import ProgressDisplay

    chosen = recipe_with_defaults(args)
    check_recipe(chosen.recipe)
    for choice in chosen.choices:
        print_error(str(choice))
    ensure_toy_model(chosen.recipe, ProgressDisplay(out))
    return chosen.recipe.policy.build(), chosen.recipe


def _parts(
    policy: "Policy", recipe: "Recipe", attempts: int, count: int
) -> "Iterable[Sequence[TaskSurvey]]":
    from grupo.config.success import with_default_reward_term
    from grupo.config.validate import check_tasks
    from grupo.config.validate_tasks import load_tasks
    from grupo.evidence.survey import survey_tasks
    from grupo.tasks.overlong import fit_prompts

    tasks, _ = load_tasks(recipe)
    if policy.prompt_limit:
        (tasks,), note = fit_prompts(recipe.overlong, policy.prompt_limit, tasks)
        if note:
            print_error(note)
    check_tasks(policy, tasks)
    chosen = [tasks[i] for i in range(min(count or len(tasks), len(tasks)))]
    parts = survey_tasks(
        policy,
        recipe.env,
        chosen,
        attempts=attempts,
        success=with_default_reward_term(recipe.evaluation.success, recipe.env),
        turn_strategy=recipe.evaluation.turn_strategy,
        key=recipe.seed,
    )
    return _with_progress(parts, len(chosen))


def _with_progress(
    parts: "Iterator[list[TaskSurvey]]", total: int
) -> "Iterator[Sequence[TaskSurvey]]":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("tasks", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as progress:
        bar = progress.add_task("tasks", total=total)
        for part in parts:
            yield part
            progress.advance(bar, len(part))


def _facts(recipe: "Recipe", attempts: int, address: str) -> dict[str, Any]:
    from importlib import metadata

    from grupo.config.success import with_default_reward_term

    return {
        "grupo": metadata.version("grupo"),
        "policy": address or str(recipe.policy.model),
        "attempts": attempts,
        "seed": recipe.seed,
        "solved": str(with_default_reward_term(recipe.evaluation.success, recipe.env)),
    }
