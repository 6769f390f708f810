"""grupo compare."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from grupo.cli.train import RecipeArguments
from grupo.core.console import out, print_error, print_line
from grupo.core.errors import ConfigError

if TYPE_CHECKING:
    from grupo.compare import Comparison
    from grupo.compare.result import ComparisonResult

Strings = list[str] | None


def compare(
    arguments: RecipeArguments = None,
    out_folder: Annotated[
        str, Option("--out", help="The comparison's folder; go on with it alone.")
    ] = "",
    method: Annotated[
        Strings, Option(help='[name=]"dapo(limit=64, margin=16)"; repeatable.')
    ] = None,
    recipes: Annotated[
        Strings, Option(help="FILE.py:NAME of a dict of recipes; repeatable.")
    ] = None,
    budget: Annotated[str, Option(help="Held equal: steps=, tokens= or seconds=.")] = "",
    updates_per_step: Annotated[
        str, Option(help="Updates a step: equal, own, or a plan: Passes(2).")
    ] = "",
    seeds: Annotated[str, Option(help="How many, from 0; or which: 3,5,8.")] = "",
    tasks: Annotated[Strings, Option(help="[name=]where from, as train's; repeatable.")] = None,
    eval_tasks: Annotated[str, Option(help="How many tasks to hold out, or where from.")] = "",
    model: Annotated[str, Option(help="Folder or hub name of a model.")] = "",
    reward: Annotated[Strings, Option(help="[name=]module:function, repeatable.")] = None,
    baseline: Annotated[str, Option(help="Whom others are compared with; the first.")] = "",
    metric: Annotated[str, Option(help="sampled, greedy, reward, signal, tokens …")] = "",
    workers: Annotated[int, Option(min=0, help="Cells side by side; 0: all GPUs or cores.")] = 0,
    threads: Annotated[int, Option(min=1, help="Threads of each cell.")] = 1,
    retry: Annotated[bool, Option("--retry", help="Go on with crashed cells, too.")] = False,
    estimate: Annotated[bool, Option("--plan", help="Say what it will cost, and stop.")] = False,
    report: Annotated[
        bool, Option("--report", help="Write what is known by now, and stop.")
    ] = False,
) -> None:
    """Train recipes under several seeds within one budget, and say what differs.

    As in --method grpo --method "dapo(limit=64, margin=16)" --budget tokens=200000 --out DIR; every
    field of a recipe is an option for all of them.
    """
    from grupo.cli.build_experiment import ExperimentArgs

    if not out_folder:
        raise ConfigError("out: no folder is named. Write --out FOLDER.")
    asked = ExperimentArgs(
        *(tuple(several or ()) for several in (arguments, method, recipes, tasks, reward)),
        budget=budget,
        updates_per_step=updates_per_step,
        seeds=seeds,
        eval_tasks=eval_tasks,
        model=model,
        baseline=baseline,
        metric=metric,
    )
    comparison = asked(Path(out_folder))
    if estimate:
        _print_estimate(comparison, Path(out_folder), workers, threads)
    elif report:
        _write_report(comparison, Path(out_folder))
    else:
        _run_comparison(comparison, Path(out_folder), workers, threads, retry=retry)


def _print_estimate(comparison: "Comparison", folder: Path, workers: int, threads: int) -> None:
    from grupo.compare.run import estimate_cost
    from grupo.report.progress_bar import ProgressDisplay

    found = estimate_cost(
        comparison, folder, workers=workers, threads=threads, callback=ProgressDisplay(out)
    )
    for line in found.lines():
        print_line(line)


def _write_report(comparison: "Comparison", folder: Path) -> None:
    from grupo.compare.run import write_report

    _print_result(write_report(comparison, folder, print_error), folder)


def _run_comparison(
    comparison: "Comparison", folder: Path, workers: int, threads: int, *, retry: bool
) -> None:
    from grupo.compare.progress import ProgressBoard
    from grupo.compare.run import run_comparison as train_them
    from grupo.report.progress_bar import ProgressDisplay

    board = ProgressBoard(out, comparison.budget)
    with _resume_hint(folder), board:
        result = train_them(
            comparison,
            folder,
            workers=workers,
            threads=threads,
            retry=retry,
            queue_callback=board.start,
            callback=ProgressDisplay(out),
        )
    _print_result(result, folder)


@contextmanager
def _resume_hint(folder: Path) -> Iterator[None]:
    """Whatever ends a comparison that was begun: say how it goes on."""
    try:
        yield
    except BaseException:
        if (folder / "comparison.json").is_file():
            print_error(f"`grupo compare --out {folder}` goes on from what was saved.")
        raise


def _print_result(result: "ComparisonResult", folder: Path) -> None:
    from grupo.compare import summary_text, table_formats, tables

    title = f"{result.metric}, 95 % intervals over seeds"
    out.print(
        table_formats.rich_table(tables.brief_table(result), title, summary_text.caption(result))
    )
    for title, lines in (
        ("What can be concluded", summary_text.conclusions(result)),
        ("What cannot", summary_text.caveats(result)),
    ):
        print_line(f"\n{title}")
        for line in lines:
            print_line(f"  {line}")
    print_line(f"\nThe report is {folder / 'report.md'}")
