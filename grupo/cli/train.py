"""grupo train, resume, grow."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from grupo.core.console import complain, out, say
from grupo.core.errors import Refused

if TYPE_CHECKING:
    from grupo.recipe import Recipe
    from grupo.training.callbacks import Watcher

Run = Annotated[Path, Argument(metavar="RUN", help="A run's folder.")]
Words = Annotated[
    list[str] | None,
    Argument(metavar="FILE.py:NAME --FIELD VALUE", help="The quickstart's by default."),
]

Events = Annotated[bool, Option("--tensorboard", help="Write TensorBoard events, too.")]
OnTrackio = Annotated[bool, Option("--trackio", help="Write into trackio's store, too.")]
OnWandb = Annotated[bool, Option("--wandb", help="Log to Weights & Biases, too.")]


def train(
    words: Words = None,
    run: Annotated[str, Option(help="The run's folder; a new one under runs/ by default.")] = "",
    method: Annotated[str, Option(help='"dapo(limit=64, margin=16)" or file.py:name.')] = "",
    model: Annotated[str, Option(help="Folder or hub name of a model.")] = "",
    tasks: Annotated[str, Option(help='"rg:chain_sum(max_terms=3)", tasks.jsonl, a.py:f.')] = "",
    held_out: Annotated[str, Option(help="How many tasks to hold out, or where from.")] = "",
    reward: Annotated[list[str] | None, Option(help="[name=]module:function, repeatable.")] = None,
    tensorboard: Events = False,
    trackio: OnTrackio = False,
    wandb: OnWandb = False,
    shown: Annotated[bool, Option("--print", help="Print the resolved recipe and stop.")] = False,
) -> None:
    """Train; every field of a recipe is an option.

    As in --steps 50 --policy.limit 128 --lr "Cosine(1e-5, 0)".
    """
    from grupo.cli.build_recipe import Choice, described, words_of
    from grupo.config.validate import check
    from grupo.training.run_dir import unused

    recipe, fields = words_of(words or ())
    choice = Choice(recipe, method, model, tasks, held_out, tuple(reward or ()), fields)()
    check(choice)
    if shown:
        return say(described(choice))
    folder = Path(run) if run else unused()
    watcher = _watcher(folder, tensorboard=tensorboard, trackio=trackio, wandb=wandb)
    _train(choice, folder, watcher)


def resume(
    run: Run,
    words: Words = None,
    tensorboard: Events = False,
    trackio: OnTrackio = False,
    wandb: OnWandb = False,
) -> None:
    """Go on with a run that was stopped.

    It ends with the same bits as one that never was. A recipe or fields, where given, must be those
    the run was begun with.
    """
    from grupo.cli.build_recipe import Choice, words_of
    from grupo.training.run_dir import Run as Opened
    from grupo.training.trainer import resume as go_on

    recipe, fields = words_of(words or ())
    opened = Opened.open(run)
    if recipe:
        opened.check_same(Choice(recipe, fields=fields)())
    opened.check_same(opened.recipe.overridden(fields))
    watcher = _watcher(run, tensorboard=tensorboard, trackio=trackio, wandb=wandb)
    with _resumable(run):
        _ended(run, go_on(run, watcher))


def grow(
    to: Annotated[
        str, Option("--out", help="The model's folder; .grupo/models/… by default.")
    ] = "",
    seed: Annotated[int, Option(help="Another seed grows another model.")] = 0,
) -> None:
    """Grow the quickstart's small model from nothing."""
    from dataclasses import replace

    from grupo.report.progress_bar import Live
    from grupo.toy import ensure
    from grupo.toy import grow as grow_it
    from grupo.toy.quickstart import SEEDLING

    seedling = replace(SEEDLING, seed=seed)
    watcher = Live(out)
    folder = grow_it(seedling, Path(to), watcher) if to else ensure(seedling, watcher)
    say(f"The model is in {folder}")


def _train(recipe: "Recipe", folder: Path, watcher: "Watcher") -> None:
    from grupo.training.run_dir import Run as Fresh
    from grupo.training.trainer import train as run_it

    Fresh.vacant(folder)
    _grow_for(recipe, watcher)
    with _resumable(folder):
        _ended(folder, run_it(recipe, folder, watcher))


def _grow_for(recipe: "Recipe", watcher: "Watcher") -> None:
    """Grow the quickstart's model where it is wanted, once all that needs no model is in order."""
    from grupo.models.causal_lm import CausalLM
    from grupo.tasks import split
    from grupo.toy import ensure
    from grupo.toy.quickstart import SEEDLING

    policy = recipe.policy
    if policy.model != str(SEEDLING.home) or SEEDLING.home.is_dir():
        return
    if isinstance(policy, CausalLM) and policy.limit >= SEEDLING.context:
        allowed = f"below {SEEDLING.context}, which is all the quickstart's model reads"
        raise Refused(f"policy.limit: {policy.limit}. Allowed: {allowed}.")
    split(recipe.tasks, recipe.held_out, recipe.seed)
    ensure(SEEDLING, watcher)


@contextmanager
def _resumable(folder: Path) -> Iterator[None]:
    """Whatever ends a run that was begun: say how it goes on."""
    try:
        yield
    except Refused:
        raise  # it says itself what is to be done
    except BaseException:
        if (folder / "recipe.json").is_file():
            complain(f"`grupo resume {folder}` goes on from what was saved.")
        raise


def _ended(folder: Path, summary: dict[str, Any]) -> None:
    from grupo.report.tables import held_out, summary_lines

    if summary["held_out"]:
        out.print(held_out(summary["held_out"]))
    else:
        say("No tasks were held out: nothing was measured.")
    for line in summary_lines(summary):
        out.print(line)
    say(f"The run is in {folder}")


def _watcher(folder: Path, **wanted: bool) -> "Watcher":
    from grupo.report.loggers import chosen
    from grupo.report.progress_bar import Live
    from grupo.training.callbacks import All

    return All([Live(out), *chosen(folder, **wanted)])
