"""A comparison from its recipes to its report."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from grupo.compare import manifest, plots, summary_text, table_formats, tables, toy_models
from grupo.compare.cost_estimate import CostEstimate, estimate_from_trials
from grupo.compare.experiment import Comparison, RunSpec, run_specs
from grupo.compare.result import ComparisonResult
from grupo.compare.run_status import CRASHED, UNFINISHED, RunStatus, reset_crashed, status_of
from grupo.compare.scheduler import NullQueueCallback, QueueCallback, Resources, train_all
from grupo.compare.validate import validate_comparison, validate_dependencies
from grupo.core.errors import ConfigError
from grupo.storage import strict_json
from grupo.storage.atomic_files import make_folder, write_atomically
from grupo.storage.lock import Lock
from grupo.training.callbacks import Callback, NullCallback

PrintLine = Callable[[str], None]
QueueCallbackFactory = Callable[
    [Sequence[RunStatus]], QueueCallback
]  # who looks on, once it is known what there is


def no_callback(run_statuses: Sequence[RunStatus]) -> QueueCallback:
    """Nobody looks on."""
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
    """Train every cell that is not finished, and write in `out` what all came to.

    `workers` cells side by side, 0: as many as there are GPUs, or cores by `threads`. A cell that
    crashed is left as it is unless `retry`. Stopped at any moment, the same call goes on.

    Raises `ConfigError`, before any work starts, for what cannot be compared.
    """
    out, machine = Path(out), Resources.detect(workers, threads)
    left = _remaining_runs(comparison, out, (*UNFINISHED, CRASHED) if retry else UNFINISHED)
    make_folder(out)
    with Lock(out / "lock"):
        manifest.save_comparison(comparison, out)
        _make_toy_models(comparison, left, callback)
        for cell in left:
            reset_crashed(cell.folder)
        try:
            train_all(left, machine, queue_callback(_run_statuses(comparison, out)))
        finally:
            result = write_report(comparison, out)
    return result


def estimate_cost(
    comparison: Comparison,
    out: Path,
    *,
    workers: int = 0,
    threads: int = 1,
    queue_callback: QueueCallback = NullQueueCallback(),
    callback: Callback = NullCallback(),
) -> CostEstimate:
    """What it will cost; leaves nothing in `out`."""
    machine = Resources.detect(workers, threads)
    _make_toy_models(comparison, _remaining_runs(comparison, out, UNFINISHED), callback)
    return estimate_from_trials(
        _run_statuses(comparison, out), comparison.budget, machine, queue_callback
    )


def write_report(
    comparison: Comparison, out: Path, print_line: PrintLine = lambda line: None
) -> ComparisonResult:
    """What is known by now, written as data, tables, pictures and a page."""
    result = ComparisonResult(comparison, _run_statuses(comparison, out))
    try:
        drawn = plots.draw_figures(result, out)
    except ConfigError as error:  # without matplotlib there are no pictures, and all the rest
        print_line(str(error))
        drawn = []
    rows, caption = tables.main_table(result), summary_text.caption(result)
    files = {
        "results.json": strict_json.to_json(result.to_data()) + "\n",
        "table.csv": tables.results_csv(result),
        "runs.csv": table_formats.csv_text(tables.exact_run_rows(result)),
        "table.md": f"{caption}\n\n{table_formats.markdown(rows)}",
        "table.tex": table_formats.latex(rows, caption),
        "report.md": summary_text.report_markdown(result, drawn),
    }
    for name, text in files.items():
        write_atomically(out / name, text)
    return result


def _run_statuses(comparison: Comparison, out: Path) -> list[RunStatus]:
    """How every cell stands."""
    return [status_of(cell) for cell in run_specs(comparison, out)]


def _remaining_runs(comparison: Comparison, out: Path, statuses: Collection[str]) -> list[RunSpec]:
    """The cells that stand so; refuses what cannot be compared, and what they need and lack."""
    validate_comparison(comparison)
    left = [one.run_spec for one in _run_statuses(comparison, out) if one.status in statuses]
    validate_dependencies(left, comparison.toy_models)
    return left


def _make_toy_models(
    comparison: Comparison, run_specs: Sequence[RunSpec], callback: Callback
) -> None:
    """Grow the models that cells want and nobody grew yet, once for all."""
    for one in toy_models.missing_toy_models(
        comparison.toy_models, (cell.recipe for cell in run_specs)
    ):
        callback.on_message(f"{one.model_dir} is grown first.")
        toy_models.make_toy_model(one, callback)
