"""The command `grupo compare`."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from grupo.cli.options import EvalTasksOption, RecipeArguments, RewardOption, Strings
from grupo.util.console import out, print_error, print_line
from grupo.util.errors import ConfigError
from grupo.util.run_files import COMPARISON_FILE
from grupo.util.terminal_text import one_line
from grupo.util.user_paths import parse_folder, shell_path

if TYPE_CHECKING:
    from grupo.compare import Comparison
    from grupo.compare.result import ComparisonResult

OutOption = Annotated[
    str, Option("--out", help="Folder of the comparison; alone, it is continued.")
]
MethodsOption = Annotated[
    Strings, Option(help='[name=]"dapo(max_length=64, overlong_buffer=16)"; may be repeated.')
]
RecipesOption = Annotated[
    Strings, Option(help="FILE.py:NAME of a dict of recipes; may be repeated.")
]
BudgetOption = Annotated[
    str, Option(help="Budget of every run: steps=, updates=, tokens= or seconds=.")
]
UpdatesOption = Annotated[
    str, Option(help="Updates per step: shared, per-method, or a plan: Updates(2).")
]
SeedsOption = Annotated[
    str, Option(help="Number of seeds (8), a list: 3,5,8, or a range: 8..24, to stop early.")
]
SequentialOption = Annotated[
    str, Option(help="When to stop early: SequentialDesign(max_pairs=16, alpha=0.05, …).")
]
ControlsOption = Annotated[
    bool, Option("--controls", help="Add two arms whose verdicts are known.")
]
TasksOption = Annotated[Strings, Option(help="[name=]source, as for train; may be repeated.")]
ModelOption = Annotated[str, Option(help="Folder, .gguf file or hub name of a model.")]
BaselineOption = Annotated[str, Option(help="Name of the baseline; the first method by default.")]
MetricOption = Annotated[str, Option(help="sampled, greedy, reward, nonzero_std_frac, tokens …")]
WorkersOption = Annotated[int, Option(min=0, help="Runs in parallel; 0: one per GPU or core.")]
ThreadsOption = Annotated[int, Option(min=1, help="Threads per run.")]
RetryOption = Annotated[bool, Option("--retry", help="Also resume crashed runs.")]
EstimateOption = Annotated[
    bool, Option("--estimate", help="Estimate the cost from finished runs and exit.")
]
TrialOption = Annotated[
    bool, Option("--trial", help="Estimate the cost from two steps of each method and exit.")
]
ReportOption = Annotated[
    bool, Option("--report", help="Write the report of the runs so far and exit.")
]


def compare(
    arguments: RecipeArguments = None,
    out_folder: OutOption = "",
    method: MethodsOption = None,
    recipes: RecipesOption = None,
    budget: BudgetOption = "",
    updates_per_step: UpdatesOption = "",
    seeds: SeedsOption = "",
    sequential: SequentialOption = "",
    controls: ControlsOption = False,
    tasks: TasksOption = None,
    eval_tasks: EvalTasksOption = "",
    model: ModelOption = "",
    reward: RewardOption = None,
    baseline: BaselineOption = "",
    metric: MetricOption = "",
    workers: WorkersOption = 0,
    threads: ThreadsOption = 1,
    retry: RetryOption = False,
    estimate: EstimateOption = False,
    trial: TrialOption = False,
    report: ReportOption = False,
) -> None:
    """Train several methods or recipes under several seeds and one budget, and compare them.

    For example: --method grpo --method "dapo(max_length=64, overlong_buffer=16)" --budget
    tokens=200000 --out compared. Every field of a recipe is an option, as for train, and applies to
    all runs.
    """
    from grupo.cli.build_experiment import ExperimentArgs

    folder = _parse_out_folder(out_folder)
    comparison = ExperimentArgs(
        *(tuple(strings or ()) for strings in (arguments, method, recipes, tasks, reward)),
        budget=budget,
        updates_per_step=updates_per_step,
        seeds=seeds,
        sequential=sequential,
        controls=controls,
        eval_tasks=eval_tasks,
        model=model,
        baseline=baseline,
        metric=metric,
    )(folder)
    if trial:
        _print_measured_cost(comparison, folder, workers, threads)
    elif estimate:
        _print_estimate(comparison, folder, workers, threads)
    elif report:
        _write_report(comparison, folder)
    else:
        _run_comparison(comparison, folder, workers, threads, retry=retry)


def _parse_out_folder(text: str) -> Path:
    from grupo.cli.build_recipe import parse_option

    if not text:
        raise ConfigError("out: none is given. Write --out FOLDER.")
    return parse_option(parse_folder, "out", text)


def _print_estimate(comparison: "Comparison", folder: Path, workers: int, threads: int) -> None:
    from grupo.compare.run import estimate_cost

    for line in estimate_cost(comparison, folder, workers=workers, threads=threads).lines():
        print_line(line)


def _print_measured_cost(
    comparison: "Comparison", folder: Path, workers: int, threads: int
) -> None:
    from grupo.compare.run import measure_cost
    from grupo.report.progress_bar import ProgressDisplay

    cost = measure_cost(
        comparison, folder, workers=workers, threads=threads, callback=ProgressDisplay(out)
    )
    for line in cost.lines():
        print_line(line)


def _write_report(comparison: "Comparison", folder: Path) -> None:
    from grupo.compare.run import write_report

    _print_result(write_report(comparison, folder, print_error), folder)


def _run_comparison(
    comparison: "Comparison", folder: Path, workers: int, threads: int, *, retry: bool
) -> None:
    from grupo.compare.inert_methods import inert_method_caveats
    from grupo.compare.progress import ProgressBoard
    from grupo.compare.run import run_comparison
    from grupo.compare.validate import validate_comparison
    from grupo.report.progress_bar import ProgressDisplay

    validate_comparison(comparison)
    for caveat in inert_method_caveats(comparison.run_recipes):
        print_error(caveat)
    board = ProgressBoard(out, comparison.budget)
    with _resume_hint(folder), board:
        result = run_comparison(
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
def _resume_hint(folder: Path) -> Generator[None]:
    """Print how to continue a comparison that ends with an error or Ctrl-C."""
    try:
        yield
    except BaseException:
        if (folder / COMPARISON_FILE).is_file():
            print_error(f"`grupo compare --out {shell_path(folder)}` continues the comparison.")
        raise


def _print_result(result: "ComparisonResult", folder: Path) -> None:
    from grupo.compare import equal_usage, summary_text, table_formats, tables

    title = f"{result.metric}, 95 % intervals over seeds"
    out.print(
        table_formats.rich_table(tables.brief_table(result), title, summary_text.caption(result))
    )
    if rows := equal_usage.equal_usage_table(result):
        title = f"{result.metric}, both runs of a pair at the smaller of their totals"
        out.print(table_formats.rich_table(rows, title, ""))
    for title, lines in (
        ("What can be concluded", summary_text.conclusions(result)),
        ("What cannot", summary_text.caveats(result)),
    ):
        print_line(f"\n{title}")
        for line in lines:
            print_line(f"  {one_line(line)}")
    print_line(f"\nThe report is {folder / 'report.md'}")
