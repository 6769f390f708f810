"""Run a comparison, estimate its cost, and write its report."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from grupo.compare import (
    equal_usage,
    manifest,
    plots,
    summary_text,
    table_formats,
    tables,
    toy_models,
)
from grupo.compare.cost_estimate import (
    CostEstimate,
    estimate_from_finished_runs,
    estimate_from_trials,
)
from grupo.compare.experiment import Comparison, RunSpec, run_specs
from grupo.compare.pairs import NeededRuns, mark_unneeded
from grupo.compare.result import ComparisonResult
from grupo.compare.run_status import CRASHED, UNFINISHED, RunStatus, reset_crashed, status_of
from grupo.compare.scheduler import NullQueueCallback, QueueCallback, Resources, train_all
from grupo.compare.validate import validate_comparison, validate_dependencies
from grupo.storage import strict_json
from grupo.storage.atomic_files import make_folder, write_atomically
from grupo.storage.lock import Lock
from grupo.training.callbacks import Callback, NullCallback
from grupo.util.errors import ConfigError

PrintLine = Callable[[str], None]
# makes the callback of a queue from the initial status of its runs
QueueCallbackFactory = Callable[[Sequence[RunStatus]], QueueCallback]


def no_callback(run_statuses: Sequence[RunStatus]) -> QueueCallback:
    """A callback that does nothing."""
    return NullQueueCallback()


def run_comparison(
    comparison: Comparison,
    out: str | Path,
    *,
    workers: int = 0,
    threads: int = 1,
    retry: bool = False,
    queue_callback: QueueCallbackFactory = no_callback,
    callback: Callback = NullCallback(),
) -> ComparisonResult:
    """Train every unfinished run of a comparison, and write its report.

    An interrupted comparison is resumed by the same call.

    Args:
        comparison: what to compare.
        out: the folder of the comparison.
        workers: the number of parallel runs; 0: one per GPU, or one per `threads` cores.
        threads: CPU threads of each run.
        retry: also resume crashed runs.
        queue_callback: makes the callback that is notified of each run.
        callback: is notified of the training of toy models.

    Raises:
        ConfigError: the comparison is not valid; raised before any work starts.
    """
    out = Path(out)
    manifest.check_folder(out)
    resources = Resources.detect(workers, threads)
    remaining = _remaining_runs(comparison, out, (*UNFINISHED, CRASHED) if retry else UNFINISHED)
    make_folder(out)
    with Lock(out / "lock"):
        manifest.save_comparison(comparison, out)
        _make_toy_models(comparison, remaining, callback)
        for run in remaining:
            reset_crashed(run.folder)
        try:
            statuses = _run_statuses(comparison, out)
            selection = NeededRuns(comparison, statuses)
            train_all(remaining, resources, queue_callback(statuses), selection)
        finally:
            result = write_report(comparison, out)
    return result


def estimate_cost(
    comparison: Comparison, out: Path, *, workers: int = 0, threads: int = 1
) -> CostEstimate:
    """Estimate the cost of the remaining runs from those that have finished; nothing is trained.

    Args:
        comparison, out, workers, threads: as for `run_comparison`.

    Raises:
        ConfigError: the comparison is not valid.
    """
    resources = Resources.detect(workers, threads)
    _remaining_runs(comparison, out, UNFINISHED)
    return estimate_from_finished_runs(_run_statuses(comparison, out), resources)


def measure_cost(
    comparison: Comparison,
    out: Path,
    *,
    workers: int = 0,
    threads: int = 1,
    queue_callback: QueueCallback = NullQueueCallback(),
    callback: Callback = NullCallback(),
) -> CostEstimate:
    """Estimate the cost of the remaining runs with short trials; nothing is written to `out`.

    Missing toy models are trained first.

    Args:
        comparison, out, workers, threads, callback: as for `run_comparison`.
        queue_callback: is notified of each trial.

    Raises:
        ConfigError: the comparison is not valid.
    """
    resources = Resources.detect(workers, threads)
    _make_toy_models(comparison, _remaining_runs(comparison, out, UNFINISHED), callback)
    statuses = _run_statuses(comparison, out)
    return estimate_from_trials(statuses, comparison.budget, resources, queue_callback)


def write_report(
    comparison: Comparison, out: Path, print_line: PrintLine = lambda line: None
) -> ComparisonResult:
    """Write the current result as data, tables, figures and a Markdown page.

    Args:
        comparison: what is compared.
        out: the folder of the comparison.
        print_line: prints a message if matplotlib is not installed.
    """
    result = ComparisonResult(comparison, _run_statuses(comparison, out))
    try:
        figures = plots.draw_figures(result, out)
    except ConfigError as error:  # without matplotlib, everything but the figures is written
        print_line(str(error))
        figures = []
    rows = tables.main_table(result)
    caption = summary_text.caption(result)
    files = {
        "results.json": strict_json.to_json(_results_data(result)) + "\n",
        "table.csv": tables.results_csv(result),
        "runs.csv": table_formats.csv_text(tables.exact_run_rows(result)),
        "table.md": f"{table_formats.markdown_text(caption)}\n\n{table_formats.markdown(rows)}",
        "table.tex": table_formats.latex(rows, caption),
        "report.md": summary_text.report_markdown(result, figures),
    }
    for name, text in files.items():
        write_atomically(out / name, text)
    return result


def _results_data(result: ComparisonResult) -> dict[str, Any]:
    """The result as plain data, with the differences at equal usage."""
    equal = {
        unit: list(map(result.difference_data, equal_usage.equal_usage_differences(result, unit)))
        for unit in equal_usage.EQUAL_UNITS
    }
    return {**result.to_data(), "equal_usage": equal}


def _run_statuses(comparison: Comparison, out: Path) -> list[RunStatus]:
    """The status of every run."""
    return mark_unneeded(comparison, list(map(status_of, run_specs(comparison, out))))


def _remaining_runs(comparison: Comparison, out: Path, statuses: Collection[str]) -> list[RunSpec]:
    """Validate the comparison, and return its runs with one of the statuses."""
    validate_comparison(comparison)
    runs = [run.run_spec for run in _run_statuses(comparison, out) if run.status in statuses]
    validate_dependencies(runs, comparison.toy_models)
    return runs


def _make_toy_models(
    comparison: Comparison, run_specs: Sequence[RunSpec], callback: Callback
) -> None:
    """Train the missing toy models that the runs need."""
    recipes = (run.recipe for run in run_specs)
    for toy_model in toy_models.missing_toy_models(comparison.toy_models, recipes):
        callback.on_message(f"Making the toy model {toy_model.model_dir} first.")
        toy_models.make_toy_model(toy_model, callback)
