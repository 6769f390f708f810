"""Commands that train: `grupo train`, `resume` and `make-toy-model`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Context, Exit, Option

from grupo.cli.options import (
    EvalTasksOption,
    RecipeArguments,
    RewardOption,
    RunArgument,
    TensorboardOption,
    TrackioOption,
    VerboseOption,
    WandbOption,
)
from grupo.cli.resume_hint import resume_hint
from grupo.distributed.phase import Phase
from grupo.distributed.start import is_rank_0
from grupo.util.console import out, print_error, print_line
from grupo.util.errors import ConfigError
from grupo.util.run_files import RECIPE_JSON
from grupo.util.user_paths import parse_folder

if TYPE_CHECKING:
    from grupo.cli.build_recipe import RecipeArgs
    from grupo.cli.chosen_defaults import ChosenRecipe
    from grupo.recipe import Recipe
    from grupo.training.callbacks import Callback

RunOption = Annotated[str, Option(help="Folder of the run; runs/DATE-TIME by default.")]
MethodOption = Annotated[
    str, Option(help='"dapo(max_length=64, overlong_buffer=16)" or file.py:name.')
]
ModelOption = Annotated[
    str,
    Option(
        help="Folder, .gguf file or hub name of a model; or RUN, RUN@best or adapters to start"
        " from."
    ),
]
TasksOption = Annotated[
    str, Option(help='tasks.jsonl, file.py:function or "rg:chain_sum(max_terms=3)".')
]
EpochsOption = Annotated[float, Option(help="Passes over the training tasks, in place of --steps.")]
RanksOption = Annotated[int, Option(help="Processes of this machine that train together.")]
OversubscribeOption = Annotated[
    bool, Option("--oversubscribe", help="Allow more --ranks than the machine has cores.")
]
ResumeIfExistsOption = Annotated[
    bool, Option("--resume-if-exists", help="Resume the run if its folder holds it already.")
]
DryRunOption = Annotated[bool, Option("--dry-run", help="Print the resolved recipe and exit.")]


def train_command(
    context: Context,
    arguments: RecipeArguments = None,
    run: RunOption = "",
    method: MethodOption = "",
    model: ModelOption = "",
    tasks: TasksOption = "",
    eval_tasks: EvalTasksOption = "",
    reward: RewardOption = None,
    tensorboard: TensorboardOption = False,
    trackio: TrackioOption = False,
    wandb: WandbOption = False,
    verbose: VerboseOption = False,
    dry_run: DryRunOption = False,
    resume_if_exists: ResumeIfExistsOption = False,
    ranks: RanksOption = 1,
    oversubscribe: OversubscribeOption = False,
    epochs: EpochsOption = 0.0,
) -> None:
    """Train a policy. Every field of a recipe is an option, listed below."""
    _launch_ranks(context, ranks, oversubscribe)
    from grupo.cli.build_recipe import RecipeArgs, parse_option
    from grupo.cli.displays import callback_factory
    from grupo.cli.fields import split_arguments
    from grupo.cli.pipeline import (
        PipelineCommand,
        check_no_recipe_options,
        find_pipeline,
        with_fields,
    )

    address, fields = split_arguments(arguments or ())
    make_callback = callback_factory(
        verbose=verbose, tensorboard=tensorboard, trackio=trackio, wandb=wandb
    )
    if pipeline := parse_option(find_pipeline, "recipe", address):
        check_no_recipe_options(method=method, model=model, tasks=tasks, reward=reward)
        fields = (*fields, ("eval_tasks", eval_tasks)) if eval_tasks else fields
        run_pipeline = PipelineCommand(run, resume_if_exists, make_callback)
        return run_pipeline(with_fields(pipeline, fields), dry_run=dry_run)
    args = RecipeArgs(address, method, model, tasks, eval_tasks, tuple(reward or ()), fields)
    chosen = _checked_recipe(args, epochs)
    if dry_run:
        return _print_dry_run(chosen)
    folder, exists = _run_folder(run, resume_if_exists)
    if exists:
        return _resume_same_recipe(chosen, folder, make_callback(folder))
    _train_new_run(chosen, folder, make_callback(folder))


def resume_command(
    context: Context,
    run: RunArgument,
    arguments: RecipeArguments = None,
    tensorboard: TensorboardOption = False,
    trackio: TrackioOption = False,
    wandb: WandbOption = False,
    verbose: VerboseOption = False,
    ranks: RanksOption = 1,
    oversubscribe: OversubscribeOption = False,
) -> None:
    """Resume an interrupted run, or extend a finished one: `grupo resume RUN --steps 300`.

    RUN may be the folder of a pipeline, whose unfinished stages are run.
    It ends with exactly the same weights as an uninterrupted one. A recipe or fields, if given,
    must be those of the run, except for max_steps and others that change no step already done.
    """
    from grupo.cli.build_recipe import RecipeArgs
    from grupo.cli.displays import callback_factory
    from grupo.cli.fields import split_arguments
    from grupo.cli.pipeline import resume_stages
    from grupo.config.overrides import apply_overrides
    from grupo.distributed.exchange import exchange_json
    from grupo.distributed.start import launched_ranks
    from grupo.storage.pipeline_dirs import is_pipeline
    from grupo.training.resume.extend import extend_run

    _launch_ranks(context, ranks, oversubscribe)
    make_callback = callback_factory(
        verbose=verbose, tensorboard=tensorboard, trackio=trackio, wandb=wandb
    )
    if is_pipeline(run):
        return resume_stages(run, arguments or (), make_callback)
    address, fields = split_arguments(arguments or ())

    def change(recipe: "Recipe") -> "Recipe":
        return apply_overrides(RecipeArgs(address)() if address else recipe, fields)

    for message in extend_run(run, change) if is_rank_0() else ():
        print_line(message)
    exchange_json(launched_ranks(), None, Phase.RUN_EXTENDED)
    _resume_run(run, make_callback(run))


def make_toy_model(
    out_folder: Annotated[
        str, Option("--out", help="Folder of the model; in the user's cache by default.")
    ] = "",
    seed: Annotated[int, Option(help="Seed of the model's weights and data.")] = 0,
) -> None:
    """Train the quickstart's small model from random weights."""
    from dataclasses import replace

    from grupo.cli.build_recipe import parse_option
    from grupo.report.progress_bar import ProgressDisplay
    from grupo.toy import ensure_trained, train_toy_model
    from grupo.toy.quickstart import TOY_MODEL

    spec = replace(TOY_MODEL, seed=seed)
    display = ProgressDisplay(out)
    if out_folder:
        folder = train_toy_model(spec, parse_option(parse_folder, "out", out_folder), display)
    else:
        folder = ensure_trained(spec, display)
    print_line(f"The model is in {folder}")


def _launch_ranks(context: Context, ranks: int, oversubscribe: bool) -> None:
    """Run the command in several processes, if `--ranks` asks for them, and exit with their code.

    The processes have the same arguments: they know by the launcher's variables what they are.
    """
    from grupo.distributed.launch import check_num_ranks, end_with_launcher, launch

    if "WORLD_SIZE" in os.environ:
        end_with_launcher()
        return
    check_num_ranks(ranks, oversubscribe)
    if ranks == 1:
        return
    raise Exit(launch(context.find_root().obj, ranks))


def _checked_recipe(args: "RecipeArgs", epochs: float) -> "ChosenRecipe":
    """The recipe with its defaults, which are printed; raises `ConfigError` if it cannot work."""
    from grupo.cli.chosen_defaults import recipe_with_defaults
    from grupo.config.validate import check_recipe

    chosen = recipe_with_defaults(args, epochs)
    check_recipe(chosen.recipe)
    for choice in chosen.choices if is_rank_0() else ():
        print_error(str(choice))
    return chosen


def _print_dry_run(chosen: "ChosenRecipe") -> None:
    from grupo.cli.build_recipe import describe_recipe
    from grupo.cli.cost_lines import dry_run_lines

    for line in dry_run_lines(chosen):
        print_error(line)
    print_line(describe_recipe(chosen.recipe))


def _run_folder(run: str, resume_if_exists: bool) -> tuple[Path, bool]:
    """The folder of the run, as rank 0 names it, and whether it holds a run to resume."""
    from grupo.cli.build_recipe import parse_option
    from grupo.distributed.exchange import broadcast_from_rank_0
    from grupo.distributed.start import launched_ranks
    from grupo.training.resume.run_folder import unused_folder

    if resume_if_exists and not run:
        raise ConfigError("resume-if-exists: the folder of the run is not named. Give it by --run.")
    folder = parse_option(parse_folder, "run", run) if run else unused_folder()
    beginning = [str(folder), resume_if_exists and (folder / RECIPE_JSON).exists()]
    path, exists = broadcast_from_rank_0(launched_ranks(), beginning, Phase.RUN_FOLDER_NAMED)
    return Path(path), exists


def _train_new_run(chosen: "ChosenRecipe", folder: Path, callback: "Callback") -> None:
    from grupo.cli.cost_lines import cost_lines, method_notes
    from grupo.cli.displays import ensure_toy_model
    from grupo.config.tool_formats import tool_notes
    from grupo.distributed.exchange import exchange_json
    from grupo.distributed.start import launched_ranks
    from grupo.training.resume.run_folder import RunFolder
    from grupo.training.resume.start_from import describe_start
    from grupo.training.start import create_trainer

    recipe = chosen.recipe
    ranks = launched_ranks()
    if is_rank_0():
        RunFolder.check_empty(folder)
        ensure_toy_model(recipe, callback)
    exchange_json(ranks, None, Phase.QUICKSTART_MODEL_TRAINED)
    start = describe_start(recipe.policy)
    if start and is_rank_0():
        print_line(start)
    with resume_hint(folder):
        trainer = create_trainer(recipe, folder, callback, ranks)
        with trainer.lock:
            if is_rank_0():
                notes = (*method_notes(recipe), *tool_notes(recipe))
                for line in (*notes, *cost_lines(recipe, chosen.lengths)):
                    print_line(line)
            summary = trainer()
        _print_summary(folder, summary)


def _resume_same_recipe(chosen: "ChosenRecipe", folder: Path, callback: "Callback") -> None:
    """Resume the run in a folder; raises `ConfigError` if it has another recipe."""
    from grupo.training.resume.run_folder import RunFolder

    RunFolder.open(folder).check_same_recipe(chosen.recipe)
    _resume_run(folder, callback)


def _resume_run(folder: Path, callback: "Callback") -> None:
    from grupo.training.start import resume_training

    with resume_hint(folder):
        _print_summary(folder, resume_training(folder, callback))


def _print_summary(folder: Path, summary: dict[str, Any]) -> None:
    from grupo.config.success import with_default_reward_term
    from grupo.report.tables import eval_table, summary_lines
    from grupo.training.resume.run_folder import RunFolder

    if not is_rank_0():
        return
    if summary["held_out"]:
        recipe = RunFolder.open(folder).recipe
        criterion = with_default_reward_term(recipe.evaluation.success, recipe.env)
        out.print(eval_table(summary["held_out"], str(criterion)))
    else:
        print_line("No tasks were held out: nothing was evaluated.")
    for line in summary_lines(summary):
        out.print(line)
    print_line(f"The run is in {folder}")
