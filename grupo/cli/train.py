"""grupo train, resume, grow."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from grupo.core.console import out, print_error, print_line
from grupo.core.errors import ConfigError

if TYPE_CHECKING:
    from grupo.recipe import Recipe
    from grupo.training.callbacks import Callback

RunArgument = Annotated[Path, Argument(metavar="RUN", help="A run's folder.")]
RecipeArguments = Annotated[
    list[str] | None,
    Argument(metavar="FILE.py:NAME --FIELD VALUE", help="The quickstart's by default."),
]

TensorboardOption = Annotated[bool, Option("--tensorboard", help="Write TensorBoard events, too.")]
TrackioOption = Annotated[bool, Option("--trackio", help="Write into trackio's store, too.")]
WandbOption = Annotated[bool, Option("--wandb", help="Log to Weights & Biases, too.")]


def train(
    arguments: RecipeArguments = None,
    run: Annotated[str, Option(help="The run's folder; a new one under runs/ by default.")] = "",
    method: Annotated[str, Option(help='"dapo(limit=64, margin=16)" or file.py:name.')] = "",
    model: Annotated[str, Option(help="Folder or hub name of a model.")] = "",
    tasks: Annotated[str, Option(help='"rg:chain_sum(max_terms=3)", tasks.jsonl, a.py:f.')] = "",
    eval_tasks: Annotated[str, Option(help="How many tasks to hold out, or where from.")] = "",
    reward: Annotated[list[str] | None, Option(help="[name=]module:function, repeatable.")] = None,
    tensorboard: TensorboardOption = False,
    trackio: TrackioOption = False,
    wandb: WandbOption = False,
    show_config: Annotated[
        bool, Option("--print", help="Print the resolved recipe and stop.")
    ] = False,
) -> None:
    """Train; every field of a recipe is an option.

    As in --steps 50 --policy.limit 128 --lr "Cosine(1e-5, 0)".
    """
    from grupo.cli.build_recipe import RecipeArgs, describe_recipe, split_arguments
    from grupo.config.validate import check_recipe
    from grupo.training.run_dir import unused_folder

    recipe, fields = split_arguments(arguments or ())
    choice = RecipeArgs(recipe, method, model, tasks, eval_tasks, tuple(reward or ()), fields)()
    check_recipe(choice)
    if show_config:
        return print_line(describe_recipe(choice))
    folder = Path(run) if run else unused_folder()
    watcher = _make_callback(folder, tensorboard=tensorboard, trackio=trackio, wandb=wandb)
    _train(choice, folder, watcher)


def resume(
    run: RunArgument,
    arguments: RecipeArguments = None,
    tensorboard: TensorboardOption = False,
    trackio: TrackioOption = False,
    wandb: WandbOption = False,
) -> None:
    """Go on with a run that was stopped.

    It ends with the same bits as one that never was. A recipe or fields, where given, must be those
    the run was begun with.
    """
    from grupo.cli.build_recipe import RecipeArgs, split_arguments
    from grupo.training.run_dir import RunFolder as Opened
    from grupo.training.trainer import resume as go_on

    recipe, fields = split_arguments(arguments or ())
    opened = Opened.open(run)
    if recipe:
        opened.check_same_recipe(RecipeArgs(recipe, fields=fields)())
    opened.check_same_recipe(opened.recipe.with_overrides(fields))
    watcher = _make_callback(run, tensorboard=tensorboard, trackio=trackio, wandb=wandb)
    with _resume_hint(run):
        _print_summary(run, go_on(run, watcher))


def make_toy_model(
    out_folder: Annotated[
        str, Option("--out", help="The model's folder; .grupo/models/… by default.")
    ] = "",
    seed: Annotated[int, Option(help="Another seed grows another model.")] = 0,
) -> None:
    """Grow the quickstart's small model from nothing."""
    from dataclasses import replace

    from grupo.report.progress_bar import ProgressDisplay
    from grupo.toy import ensure_trained
    from grupo.toy import train_toy_model as grow_it
    from grupo.toy.quickstart import TOY_MODEL

    seedling = replace(TOY_MODEL, seed=seed)
    watcher = ProgressDisplay(out)
    folder = (
        grow_it(seedling, Path(out_folder), watcher)
        if out_folder
        else ensure_trained(seedling, watcher)
    )
    print_line(f"The model is in {folder}")


def _train(recipe: "Recipe", folder: Path, callback: "Callback") -> None:
    from grupo.training.run_dir import RunFolder as Fresh
    from grupo.training.trainer import train as run_it

    Fresh.check_empty(folder)
    _ensure_toy_model(recipe, callback)
    with _resume_hint(folder):
        _print_summary(folder, run_it(recipe, folder, callback))


def _ensure_toy_model(recipe: "Recipe", callback: "Callback") -> None:
    """Grow the quickstart's model where it is wanted, once all that needs no model is in order."""
    from grupo.models.causal_lm import CausalLM
    from grupo.tasks import split_tasks
    from grupo.toy import ensure_trained
    from grupo.toy.quickstart import TOY_MODEL

    policy = recipe.policy
    if policy.model != str(TOY_MODEL.model_dir) or TOY_MODEL.model_dir.is_dir():
        return
    if isinstance(policy, CausalLM) and policy.max_new_tokens >= TOY_MODEL.context_length:
        allowed = f"below {TOY_MODEL.context_length}, which is all the quickstart's model reads"
        raise ConfigError(f"policy.max_new_tokens: {policy.max_new_tokens}. Allowed: {allowed}.")
    split_tasks(recipe.tasks, recipe.eval_tasks, recipe.seed)
    ensure_trained(TOY_MODEL, callback)


@contextmanager
def _resume_hint(folder: Path) -> Iterator[None]:
    """Whatever ends a run that was begun: say how it goes on."""
    try:
        yield
    except ConfigError:
        raise  # it says itself what is to be done
    except BaseException:
        if (folder / "recipe.json").is_file():
            print_error(f"`grupo resume {folder}` goes on from what was saved.")
        raise


def _print_summary(folder: Path, summary: dict[str, Any]) -> None:
    from grupo.report.tables import eval_table, summary_lines

    if summary["eval_table"]:
        out.print(eval_table(summary["eval_table"]))
    else:
        print_line("No tasks were held out: nothing was measured.")
    for line in summary_lines(summary):
        out.print(line)
    print_line(f"The run is in {folder}")


def _make_callback(folder: Path, **wanted: bool) -> "Callback":
    from grupo.report.loggers import selected_loggers
    from grupo.report.progress_bar import ProgressDisplay
    from grupo.training.callbacks import CallbackList

    return CallbackList([ProgressDisplay(out), *selected_loggers(folder, **wanted)])
