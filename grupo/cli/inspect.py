"""Commands that read a run: `grupo eval`, `rollouts`, `doctor`, `check` and `export`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from grupo.cli.options import OptionalRunArgument, RewardOption, RunArgument, StrategiesOption
from grupo.cli.paths import export_folder_argument, last_run, runs_below
from grupo.storage.pipeline_dirs import is_pipeline
from grupo.util.console import err, out, print_error, print_line
from grupo.util.errors import ConfigError
from grupo.util.user_paths import parse_path

if TYPE_CHECKING:
    from grupo.cli.eval_args import EvalArgs
    from grupo.rollouts.strategy_results import StrategyComparison

CheckpointOption = Annotated[
    str, Option(help="Checkpoint of the run: last, best by keep.metric, or the number of a step.")
]
WeightsOption = Annotated[
    str, Option(help="trained, or ema: their moving average, if the recipe has one.")
]
JsonOption = Annotated[bool, Option("--json", help="Print JSON.")]


def evaluate(
    arguments: Annotated[
        list[str] | None,
        Argument(metavar="RUN --FIELD VALUE", help="Folder of a run; or use --model."),
    ] = None,
    model: Annotated[str, Option(help="Folder, .gguf file or hub name of a model.")] = "",
    tasks: Annotated[
        str, Option(help="Source of tasks; the run's held-out tasks by default.")
    ] = "",
    reward: RewardOption = None,
    count: Annotated[int, Option(min=1, help="Number of tasks at most.")] = 200,
    attempts: Annotated[int, Option(min=1, help="Sampled rollouts per task.")] = 8,
    strategy: StrategiesOption = None,
    head: Annotated[str, Option(help="A head that scores given answers; of a run alone.")] = "",
    calibration: Annotated[
        str, Option(metavar="SOURCE", help="Answers to other tasks, to calibrate the head.")
    ] = "",
    picture: Annotated[
        str, Option("--out", metavar="FILE", help="Draw accuracy over tokens: SVG, PNG or PDF.")
    ] = "",
    keep: Annotated[
        bool, Option("--keep", help="Keep the comparison in the run's folder, for its report.")
    ] = False,
    checkpoint: CheckpointOption = "last",
    weights: WeightsOption = "trained",
    as_json: JsonOption = False,
) -> None:
    """Evaluate a run or a model: pass@1 to pass@k, strategies, or a head that scores answers."""
    if picture and not strategy:
        raise ConfigError("out: the picture compares strategies. Add --strategy, or leave it out.")
    if keep and (model or not strategy):
        raise ConfigError("keep: True. Allowed with the folder of a run and --strategy.")
    from grupo.cli.eval_args import EvalArgs
    from grupo.report.tables import score_table

    args = EvalArgs(tuple(arguments or ()), model, tasks, tuple(reward or ()), checkpoint, weights)
    if head or calibration:
        _check_head_alone(model, reward, strategy)
    if head or calibration or (not reward and not strategy and args.trains_scorer):
        return _evaluate_head(args, head, calibration, count, as_json=as_json)
    if strategy:
        comparison = _compare_strategies(args, count, attempts, strategy, picture, as_json=as_json)
        return _keep(comparison, args.run_folder) if keep else None
    result = args(count, attempts)
    print_line(json.dumps(result.to_data())) if as_json else out.print(score_table(result))
    if result.num_failed:
        print_error(
            f"Warning: a reward failed for {result.num_failed} rollouts; they count as not solved."
        )


def _check_head_alone(model: str, reward: list[str] | None, strategy: list[str] | None) -> None:
    """Raise `ConfigError` for options that do not go with a head that scores given answers."""
    given = [name for name, value in (("reward", reward), ("strategy", strategy)) if value]
    if model or given:
        name = given[0] if given else "model"
        raise ConfigError(
            f"head: --{name} is given, too. Allowed with a head or a calibration: the folder of a"
            " run, whose method trains the head, and --tasks with answers."
        )


def _evaluate_head(
    args: "EvalArgs", head: str, calibration: str, count: int, *, as_json: bool
) -> None:
    """Score held-out answers by a head, and print how good the scores are."""
    from grupo.cli.eval_scorer import ScorerArgs
    from grupo.report.scorers import scorer_lines, scorer_table

    result = ScorerArgs(args, head, calibration)(count)
    if as_json:
        return print_line(json.dumps(result.to_data()))
    out.print(scorer_table(result))
    for line in scorer_lines(result):
        print_line(line)


def _compare_strategies(
    args: "EvalArgs",
    count: int,
    attempts: int,
    strategies: list[str],
    picture: str,
    *,
    as_json: bool,
) -> "StrategyComparison":
    """Compare strategies, print the comparison, and draw it if a file is named."""
    from grupo.cli.build_recipe import parse_option
    from grupo.report.strategies import comparison_lines, strategy_table
    from grupo.report.strategy_plot import check_picture, draw_frontier

    file = parse_option(parse_path, "out", picture) if picture else None
    if file:
        check_picture(file)
    comparison = args.compare(count, attempts, strategies)
    if as_json:
        print_line(json.dumps(comparison.to_data()))
    else:
        out.print(strategy_table(comparison))
        for line in comparison_lines(comparison):
            print_line(line)
    if file:
        draw_frontier(comparison, file)
    if comparison.errors:
        print_error(
            f"Warning: {len(comparison.errors)} rollouts could not be scored; they count as not"
            f" solved: {comparison.errors[0]}"
        )
    return comparison


def _keep(comparison: "StrategyComparison", run: Path) -> None:
    """Keep a comparison with a run."""
    from grupo.report.kept_strategies import keep_comparison

    print_error(
        f"The comparison is kept for the report of the run: {keep_comparison(comparison, run)}"
    )


def rollouts(
    run: RunArgument,
    step: Annotated[int | None, Option(min=1, help="Rollouts of one step, from 1.")] = None,
    best: Annotated[int | None, Option(min=0, help="So many with the highest reward.")] = None,
    worst: Annotated[int | None, Option(min=0, help="So many with the lowest reward.")] = None,
    min_reward: Annotated[float | None, Option(help="Smallest reward.")] = None,
    max_reward: Annotated[float | None, Option(help="Largest reward.")] = None,
    contains: Annotated[str, Option(help="A text that the rollout contains.")] = "",
    task: Annotated[str, Option(help="First characters of a task's key.")] = "",
    failed: Annotated[bool, Option("--failed", help="Rollouts that could not be scored.")] = False,
    limit: Annotated[int, Option(min=1, max=10**9, help="Number of rollouts at most.")] = 10,
    parquet: Annotated[
        str, Option(metavar="FILE", help="Write all matching rollouts to a new Parquet file.")
    ] = "",
    git: Annotated[
        str,
        Option(metavar="FOLDER", help="Write the rollouts and their parents as commits of git."),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Print rollouts of a run; of a pipeline, those of its last run."""
    if parquet and git:
        raise ConfigError("git: Allowed: one of --parquet and --git.")
    run = last_run(run)
    from grupo.report.read_run import explain_read_errors
    from grupo.report.rollouts import RolloutFilter, check_step, format_rollouts, select_rollouts

    rollout_filter = RolloutFilter(step, min_reward, max_reward, contains, task, failed)
    if parquet:
        from grupo.cli.build_recipe import parse_option
        from grupo.report.parquet import write_parquet

        count = write_parquet(run, parse_option(parse_path, "parquet", parquet), rollout_filter)
        return print_line(f"{count} rollouts are in {parquet}")
    with explain_read_errors(run):
        records = select_rollouts(run, rollout_filter, best=best, worst=worst, limit=limit)
        if step is not None and not records:
            check_step(run, step)
        if git:
            from grupo.cli.build_recipe import parse_option
            from grupo.report.git_history import write_git_history

            folder = parse_option(parse_path, "git", git)
            count = write_git_history(run, folder, records)
            return print_line(f"{count} commits are in {git}")
        shown = None if as_json else format_rollouts(records)
    print_line(json.dumps(records)) if as_json else out.print(shown)


def doctor(
    run: OptionalRunArgument = None,
    environment: Annotated[
        bool,
        Option("--environment", help="Print versions, devices, the compiler and all extras."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Diagnose a run, every run of a pipeline, or, with --environment, the installation."""
    if (run is None) != environment:
        raise ConfigError("run: Allowed: either the folder of a run or --environment.")
    if run is None:
        return _print_environment(as_json=as_json)
    from dataclasses import asdict

    from grupo.report.doctor import examine, format_findings

    findings = {str(x.relative_to(run)): examine(x) for x in runs_below(run)}
    if as_json:
        data = {name: [asdict(finding) for finding in found] for name, found in findings.items()}
        return print_line(json.dumps(data if is_pipeline(run) else next(iter(data.values()))))
    for name, found in findings.items():
        if is_pipeline(run):
            print_line(f"{name}:")
        out.print(format_findings(found))


def _print_environment(*, as_json: bool) -> None:
    from grupo.report.environment import environment_lines, examine_environment

    environment = examine_environment()
    lines = environment_lines(environment)
    for line in [json.dumps(environment.to_data())] if as_json else lines:
        print_line(line)


def check(run: RunArgument, as_json: JsonOption = False) -> None:
    """Verify every file of a run or a pipeline without changing any; exit code 4 if damaged."""
    results = {folder: _check_run(folder, as_json=as_json) for folder in runs_below(run)}
    if as_json:
        data = {str(x.relative_to(run)): result for x, (result, _) in results.items()}
        print_line(json.dumps(data if is_pipeline(run) else next(iter(data.values()))))
    if not all(is_intact for _, is_intact in results.values()):
        from grupo.util.exit_codes import EXIT_CORRUPT

        sys.exit(EXIT_CORRUPT)
    if is_pipeline(run):
        from grupo.cli.pipeline import check_data_files

        check_data_files(run)


def _check_run(run: Path, *, as_json: bool) -> tuple[dict[str, Any], bool]:
    """Check a run and print the result unless it becomes JSON; whether the run is intact."""
    from dataclasses import asdict

    from grupo.report.byte_progress import ByteProgress
    from grupo.report.read_run import check_run_folder
    from grupo.training.resume.run_check import RunChecker

    with ByteProgress(check_run_folder(run), err) as progress:
        result = RunChecker(run, progress)()
    if not as_json:
        print_line(result.describe(run))
    return {**asdict(result), "intact": result.is_intact}, result.is_intact


def export(
    run: RunArgument,
    folder: Annotated[
        Path, Argument(metavar="FOLDER", parser=export_folder_argument, help="A new folder.")
    ],
    separate_adapters: Annotated[
        bool, Option("--separate-adapters", help="Write LoRA adapters without merging them.")
    ] = False,
    checkpoint: CheckpointOption = "last",
    weights: WeightsOption = "trained",
    push_to_hub: Annotated[
        str, Option(metavar="USER/MODEL", help="Also upload it to the Hugging Face hub.")
    ] = "",
    private: Annotated[bool, Option("--private", help="Upload to a private repository.")] = False,
) -> None:
    """Write the trained model as a folder that transformers loads, with a model card.

    Of a pipeline it is the model of the last run.
    """
    from grupo.cli.export import Export

    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise ConfigError(f"folder: {str(folder)!r} exists. Name another folder.")
    export_run = Export(last_run(run), folder, checkpoint, weights, separate_adapters)
    if push_to_hub:
        print_line(export_run.and_upload(push_to_hub, private=private))
    else:
        export_run(folder.name)
    print_line(f"The model is in {folder}")
