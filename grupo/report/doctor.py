"""`grupo doctor`: checks of a run, each with probable causes and suggestions."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group
from rich.padding import Padding
from rich.table import Table

from grupo.report.checks import (
    gradient_direction,
    integrity,
    learning_signal,
    optimization,
    over_optimisation,
    progress,
    rewards,
    routers,
    sampler_mismatch,
    truth,
)
from grupo.report.checks.finding import Check, Finding
from grupo.report.checks.load_run import load_run
from grupo.report.checks.run_data import RunData
from grupo.report.escape import literal, literal_line
from grupo.report.read_run import explain_read_errors
from grupo.util.user_paths import relative_path

CHECKS: tuple[Check, ...] = (
    integrity.torn_journal,
    integrity.version_mismatch,
    integrity.missing_steps,
    integrity.stalled_run,
    integrity.stopped_early,
    learning_signal.too_few_steps,
    progress.failed_rewards,
    progress.eval_not_scored,
    rewards.nan_rewards,
    gradient_direction.nonfinite_advantages,
    integrity.nan_metrics,
    optimization.nonfinite_gradient,
    sampler_mismatch.wrong_mask,
    gradient_direction.loss_sign,
    gradient_direction.advantage_against_reward,
    gradient_direction.update_against_gradient,
    learning_signal.zero_reward,
    learning_signal.constant_reward,
    learning_signal.no_reward_spread,
    learning_signal.no_trained_groups,
    optimization.no_gradient,
    optimization.weights_unchanged,
    sampler_mismatch.sampler_mismatch,
    sampler_mismatch.stale_weights,
    optimization.update_too_large,
    progress.eval_score_fell,
    progress.reward_dropped,
    progress.entropy_collapse,
    learning_signal.identical_answers,
    progress.truncated_completions,
    progress.length_growth,
    rewards.reward_follows_length,
    rewards.reward_without_success,
    truth.parted_from_truth,
    rewards.answer_in_prompt,
    over_optimisation.over_optimised,
    routers.dead_experts,
    optimization.growing_kl,
    optimization.exploding_gradient,
    learning_signal.constant_reward_terms,
    rewards.slow_rewards,
    rewards.long_tail,
    integrity.oom_retry,
    optimization.zero_loss,
)
_ORDER = ("error", "warning", "note")
_STYLE = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def examine(run_folder: Path) -> list[Finding]:
    """The findings about a run, finished or in progress, the most severe first.

    The commands in their suggestions have the run's folder, relative to the working directory if it
    is inside.

    Raises:
        ConfigError: The folder holds no run, or its files cannot be read.
    """
    folder = str(relative_path(run_folder))
    with explain_read_errors(run_folder):
        return [finding.with_folder(folder) for finding in diagnose(load_run(run_folder))]


def diagnose(run: RunData) -> list[Finding]:
    """The findings of every check on the data of a run, the most severe first."""
    findings = [finding for check in CHECKS for finding in check(run)]
    return sorted(findings, key=lambda finding: _ORDER.index(finding.severity))


def format_findings(findings: Sequence[Finding]) -> Group:
    """The findings as text; a run without errors and warnings gets a line that it is healthy."""
    is_sick = any(finding.severity != "note" for finding in findings)
    healthy = literal(f"Healthy: none of {len(CHECKS)} checks found a problem.", "green")
    return Group(*[healthy] * (not is_sick), *map(_format_finding, findings))


def _format_finding(finding: Finding) -> Group:
    grid = Table.grid(padding=(0, 1))
    locations = tuple(map(str, finding.locations))
    rows = (("at", locations), ("causes", finding.causes), ("try", finding.suggestions))
    for label, texts in rows:
        for number, line in enumerate(texts):
            grid.add_row(label if number == 0 else "", literal_line(line))
    head = literal_line(f"{finding.severity}: {finding.name}", _STYLE[finding.severity])
    return Group(head, Padding(Group(literal_line(finding.details), grid), (0, 0, 1, 2)))
