"""grupo compare."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from grupo.cli.train import Words
from grupo.core.console import complain, out, say
from grupo.core.errors import Refused

if TYPE_CHECKING:
    from grupo.compare import Comparison, Result

Many = list[str] | None


def compare(
    words: Words = None,
    to: Annotated[str, Option("--out", help="The comparison's folder; go on with it alone.")] = "",
    method: Annotated[Many, Option(help='[name=]"dapo(limit=64, margin=16)"; repeatable.')] = None,
    recipes: Annotated[Many, Option(help="FILE.py:NAME of a dict of recipes; repeatable.")] = None,
    budget: Annotated[str, Option(help="Held equal: steps=, tokens= or seconds=.")] = "",
    updates: Annotated[str, Option(help="Updates a step: equal, own, or a plan: Passes(2).")] = "",
    seeds: Annotated[str, Option(help="How many, from 0; or which: 3,5,8.")] = "",
    tasks: Annotated[Many, Option(help="[name=]where from, as train's; repeatable.")] = None,
    held_out: Annotated[str, Option(help="How many tasks to hold out, or where from.")] = "",
    model: Annotated[str, Option(help="Folder or hub name of a model.")] = "",
    reward: Annotated[Many, Option(help="[name=]module:function, repeatable.")] = None,
    baseline: Annotated[str, Option(help="Whom others are compared with; the first.")] = "",
    metric: Annotated[str, Option(help="sampled, greedy, reward, signal, tokens …")] = "",
    workers: Annotated[int, Option(min=0, help="Cells side by side; 0: all GPUs or cores.")] = 0,
    threads: Annotated[int, Option(min=1, help="Threads of each cell.")] = 1,
    retry: Annotated[bool, Option("--retry", help="Go on with crashed cells, too.")] = False,
    plan: Annotated[bool, Option("--plan", help="Say what it will cost, and stop.")] = False,
    report: Annotated[
        bool, Option("--report", help="Write what is known by now, and stop.")
    ] = False,
) -> None:
    """Train recipes under several seeds within one budget, and say what differs.

    As in --method grpo --method "dapo(limit=64, margin=16)" --budget tokens=200000 --out DIR; every
    field of a recipe is an option for all of them.
    """
    from grupo.cli.build_experiment import Asked

    if not to:
        raise Refused("out: no folder is named. Write --out FOLDER.")
    asked = Asked(
        *(tuple(several or ()) for several in (words, method, recipes, tasks, reward)),
        budget=budget,
        updates=updates,
        seeds=seeds,
        held_out=held_out,
        model=model,
        baseline=baseline,
        metric=metric,
    )
    comparison = asked(Path(to))
    if plan:
        _plan(comparison, Path(to), workers, threads)
    elif report:
        _report(comparison, Path(to))
    else:
        _train(comparison, Path(to), workers, threads, retry=retry)


def _plan(comparison: "Comparison", folder: Path, workers: int, threads: int) -> None:
    from grupo.compare.run import planned
    from grupo.report.progress_bar import Live

    found = planned(comparison, folder, workers=workers, threads=threads, watcher=Live(out))
    for line in found.lines():
        say(line)


def _report(comparison: "Comparison", folder: Path) -> None:
    from grupo.compare.run import written

    _show(written(comparison, folder, complain), folder)


def _train(
    comparison: "Comparison", folder: Path, workers: int, threads: int, *, retry: bool
) -> None:
    from grupo.compare.progress import Board
    from grupo.compare.run import compare as train_them
    from grupo.report.progress_bar import Live

    board = Board(out, comparison.budget)
    with _resumable(folder), board:
        result = train_them(
            comparison,
            folder,
            workers=workers,
            threads=threads,
            retry=retry,
            audience=board.begun,
            watcher=Live(out),
        )
    _show(result, folder)


@contextmanager
def _resumable(folder: Path) -> Iterator[None]:
    """Whatever ends a comparison that was begun: say how it goes on."""
    try:
        yield
    except BaseException:
        if (folder / "comparison.json").is_file():
            complain(f"`grupo compare --out {folder}` goes on from what was saved.")
        raise


def _show(result: "Result", folder: Path) -> None:
    from grupo.compare import summary_text, table_formats, tables

    title = f"{result.metric}, 95 % intervals over seeds"
    out.print(table_formats.shown(tables.brief(result), title, summary_text.caption(result)))
    for title, lines in (
        ("What can be concluded", summary_text.concluded(result)),
        ("What cannot", summary_text.cautions(result)),
    ):
        say(f"\n{title}")
        for line in lines:
            say(f"  {line}")
    say(f"\nThe report is {folder / 'report.md'}")
