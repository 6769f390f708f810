"""Checks of the run's files and process: torn journals, missing steps, stalled runs."""

import math
from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from grupo.core.serialization import holds_descriptions
from grupo.report.checks.finding import Finding, FindingTemplate, format_steps, step_locations
from grupo.report.checks.run_data import RunData

# means over nothing: no rollout ended, was scored, or was trained on
MAY_BE_NAN = (
    "reward/",
    "groups/nonzero_std_frac",
    "advantage/zero_frac",
    "completions/",
    "grad_",
    "loss",
)
MIN_SILENT_SECONDS = 60.0  # shorter silences are never reported
STALL_FACTOR = 20.0  # times the median time of a step

TORN_JOURNAL = FindingTemplate(
    "torn journal",
    "note",
    (
        "The run is writing at this moment.",
        "The run was killed while writing, or the disk was full.",
    ),
    ("`grupo resume RUN` removes the torn line and repeats that step.",),
)
VERSION_MISMATCH = FindingTemplate(
    "version mismatch",
    "warning",
    ("The run was started with another version of grupo, which wrote other names.",),
    ("Read the run with the version that started it.",),
)
NAN_METRICS = FindingTemplate(
    "NaN metrics",
    "error",
    (
        "The weights may contain NaN, from an update or from the loaded checkpoint.",
        "Rewards or advantages are NaN or infinite.",
        "A value overflowed the range of its dtype.",
    ),
    (
        "Restart from an earlier checkpoint with a lower `learning_rate`.",
        'Try dtype="float32" for a few steps.',
    ),
)
MISSING_STEPS = FindingTemplate(
    "missing steps",
    "error",
    ("The journal was edited, or joined from several runs.", "The disk lost part of the file."),
    ("`grupo resume RUN` from an earlier checkpoint writes these steps again.",),
)
STALLED_RUN = FindingTemplate(
    "stalled run",
    "error",
    (
        "A reward or a tool hangs, or waits for a remote service.",
        "The inference engine does not respond.",
        "One rollout is very long.",
    ),
    (
        "Find where it waits: `py-spy dump --pid PID`; the process id is in `RUN/lock`.",
        "Stop it with Ctrl-C and continue with `grupo resume RUN`: checkpoints are kept.",
        "Set a `time_limit` for the reward.",
    ),
)
STOPPED_EARLY = FindingTemplate(
    "stopped early",
    "note",
    ("The process was stopped or killed, or trains on another machine.",),
    ("`grupo resume RUN` continues, bit-identical to an uninterrupted run.",),
)
STOPPED_FOR_GOOD = FindingTemplate(
    "stopped early",
    "warning",
    ("The process was stopped or killed, or trains on another machine.",),
    (
        "The run used objects in memory and cannot be resumed: train in a new folder. `grupo resume"
        " RUN` names the objects and how to make a run with them resumable.",
    ),
)
OOM_RETRY = FindingTemplate(
    "OOM retry",
    "note",
    ("The micro-batches were too large for the memory; the run retried with smaller ones.",),
    (
        "Start with a smaller `policy.tokens_per_microbatch`.",
        "`--policy.gradient_checkpointing True`: slower, with far less memory.",
    ),
)


def torn_journal(run: RunData) -> Iterator[Finding]:
    """A journal ends within a line."""
    if run.files.torn_journals:
        yield TORN_JOURNAL(
            f"The last line of {' and '.join(run.files.torn_journals)} is incomplete."
        )


def version_mismatch(run: RunData) -> Iterator[Finding]:
    """Lines of a journal lack fields of this version."""
    if run.files.missing_fields:
        yield VERSION_MISMATCH(
            f"Lines lack {', '.join(run.files.missing_fields)}: the checks that need them were"
            " skipped."
        )


def nan_metrics(run: RunData) -> Iterator[Finding]:
    """Metrics are NaN at steps at which they have a value."""
    nan_steps: dict[str, list[int]] = {}
    for name in run.metric_names():
        steps = [int(m["step"]) for m in run.steps if math.isnan(m.get(name, 0.0))]
        if steps and not name.startswith(MAY_BE_NAN):
            nan_steps[name] = steps
    if nan_steps:
        listed = "; ".join(f"{name} at {format_steps(steps)}" for name, steps in nan_steps.items())
        every = sorted({step for steps in nan_steps.values() for step in steps})
        yield NAN_METRICS(f"{listed}.", locations=step_locations(every))


def missing_steps(run: RunData) -> Iterator[Finding]:
    """Steps are missing from the journal, or occur twice."""
    steps = [int(m["step"]) for m in run.steps]
    wrong = [b for a, b in pairwise([0, *steps]) if b != a + 1]
    if wrong:
        yield MISSING_STEPS(
            f"Steps should count from 1 by 1; they do not before {format_steps(wrong)}.",
            locations=step_locations(wrong),
        )


def stalled_run(run: RunData) -> Iterator[Finding]:
    """A process holds the run's lock and has not written for a long time."""
    times = run("time/step").values
    limit = 10 * MIN_SILENT_SECONDS
    if times:
        limit = max(MIN_SILENT_SECONDS, STALL_FACTOR * median(times))
    silence = run.files.seconds_since_write
    if run.files.is_locked and silence > limit:
        phases = [name for name in run.metric_names("time/") if name != "time/step"]
        longest = max(phases, key=lambda name: run.last_window(name).mean, default="")
        most = f" Most of it is `{longest}`." if longest else ""
        yield STALLED_RUN(
            f"A process trains in this folder and has written nothing for {silence:.0f} s; a step"
            f" usually takes {median(times or (0.0,)):.3g} s.{most}"
        )


def stopped_early(run: RunData) -> Iterator[Finding]:
    """No process trains in the folder, and the run has not finished."""
    steps = run.recipe.get("max_steps", 0)
    if not run.files.is_locked and not run.summary and len(run.steps) < steps:
        template = STOPPED_FOR_GOOD if holds_descriptions(run.recipe) else STOPPED_EARLY
        yield template(
            f"{len(run.steps)} of {steps} steps are logged, and no process trains in this folder."
        )


def oom_retry(run: RunData) -> Iterator[Finding]:
    """Micro-batches became smaller during the run."""
    tokens = run("microbatch_tokens")
    reductions = [step for (_, a), (step, b) in pairwise(tokens) if b < a]
    if reductions:
        yield OOM_RETRY(
            f"`policy.tokens_per_microbatch` fell from {tokens.values[0]:.0f} to"
            f" {tokens.values[-1]:.0f}, at {format_steps(reductions)}.",
            locations=step_locations(reductions),
        )
