"""grupo train, resume, grow."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from grupo.cli.console import out, say

Run = Annotated[Path, Argument(help="A run's folder.")]
Words = Annotated[
    list[str] | None,
    Argument(metavar="[recipe.py:NAME] [--FIELD VALUE]…", help="The quickstart's by default."),
]


def train(
    words: Words = None,
    run: Annotated[str, Option(help="The run's folder; a new one under runs/ by default.")] = "",
    method: Annotated[str, Option(help='"dapo(limit=64, margin=16)" or file.py:name.')] = "",
    model: Annotated[str, Option(help="Folder or hub name of a model.")] = "",
    tasks: Annotated[str, Option(help='"rg:chain_sum(max_terms=3)", tasks.jsonl, a.py:f.')] = "",
    held_out: Annotated[str, Option(help="How many tasks to hold out, or where from.")] = "",
    reward: Annotated[list[str] | None, Option(help="[name=]module:function, repeatable.")] = None,
    tensorboard: Annotated[bool, Option(help="Write TensorBoard events, too.")] = False,
    shown: Annotated[bool, Option("--print", help="Print the resolved recipe and stop.")] = False,
) -> None:
    """Train. Every field of the recipe is an option: --steps 50 --policy.limit 128."""
    from grupo.cli.choosing import Choice, described, recipe_and_fields

    recipe, fields = recipe_and_fields(words or ())
    choice = Choice(recipe, method, model, tasks, held_out, tuple(reward or ()), fields)()
    if shown:
        return say(described(choice))
    _train(choice, Path(run) if run else _new_folder(), tensorboard)


def resume(
    run: Run,
    words: Words = None,
    tensorboard: Annotated[bool, Option(help="Write TensorBoard events, too.")] = False,
) -> None:
    """Go on with a run that was stopped: it ends with the same bits as one that never was.

    A recipe or fields, where given, must be those the run was begun with.
    """
    from grupo.cli.choosing import Choice, recipe_and_fields
    from grupo.run import Run as Opened
    from grupo.train import resume as go_on

    recipe, fields = recipe_and_fields(words or ())
    if recipe or fields:
        Opened.open(run).check_same(Choice(recipe, fields=fields)())
    _ended(run, go_on(run, _watcher(run, tensorboard)))


def grow(
    to: Annotated[
        str, Option("--out", help="The model's folder; .grupo/models/… by default.")
    ] = "",
    seed: Annotated[int, Option(help="Another seed grows another model.")] = 0,
) -> None:
    """Grow the quickstart's small language model from nothing, by supervision."""
    from dataclasses import replace

    from grupo.grow import ensure
    from grupo.grow import grow as grow_it
    from grupo.quickstart import SEEDLING
    from grupo.report.live import Live

    seedling = replace(SEEDLING, seed=seed)
    watcher = Live(out)
    folder = grow_it(seedling, Path(to), watcher) if to else ensure(seedling, watcher)
    say(f"The model is in {folder}")


def _train(recipe, folder: Path, tensorboard: bool) -> None:
    from grupo.border import check
    from grupo.grow import ensure
    from grupo.quickstart import SEEDLING
    from grupo.run import Run as Fresh
    from grupo.train import train as run_it

    check(recipe)
    Fresh.vacant(folder)
    watcher = _watcher(folder, tensorboard)
    if recipe.policy.model == str(SEEDLING.home):
        ensure(SEEDLING, watcher)
    say(recipe.geometry())
    _ended(folder, run_it(recipe, folder, watcher))


def _ended(folder: Path, summary) -> None:
    from grupo.report.tables import held_out, summary_lines

    out.print(held_out(summary["held_out"]))
    for line in summary_lines(summary):
        out.print(line)
    say(f"The run is in {folder}")


def _watcher(folder: Path, tensorboard: bool):
    from grupo.report.live import Live
    from grupo.watch import All

    if not tensorboard:
        return Live(out)
    from grupo.report.tensorboard import TensorBoard

    return All([Live(out), TensorBoard(folder / "tensorboard")])


def _new_folder() -> Path:
    """A name under runs/ that nobody has."""
    stem = datetime.now().strftime("%Y%m%d-%H%M%S")
    names = (Path("runs") / f"{stem}{tail}" for tail in ("", *(f"-{i}" for i in range(2, 1000))))
    return next(name for name in names if not name.exists())
