"""Is what the run left behind whole, and does the run still go?"""

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from grupo.report.checks.finding import Finding, FindingTemplate, format_steps, step_locations
from grupo.report.checks.run_data import RunData

# of these the mean over nothing is NaN: no rollout was judged, or nothing was learned from
MAY_BE_NAN = (
    "reward/",
    "groups/nonzero_std_frac",
    "advantage/zero_frac",
    "completions/length_max",
    "gradient/",
    "loss",
)
MIN_SILENT_SECONDS = 60.0  # seconds: below, nobody worries
STALL_FACTOR = 20.0  # times the usual time of a step

TORN_JOURNAL = FindingTemplate(
    "half written",
    "note",
    (
        "The run is writing just now.",
        "It was stopped while it wrote: killed, or the disk was full.",
    ),
    ("`grupo resume RUN` cuts it off and does that step again.",),
)
VERSION_MISMATCH = FindingTemplate(
    "another version",
    "warning",
    ("The run was begun with another version of grupo, which wrote other names.",),
    ("Read it with the version that it was begun with.",),
)
NAN_METRICS = FindingTemplate(
    "not a number",
    "error",
    (
        "The weights hold NaN: an update went wrong, or they were loaded so.",
        "A number overflowed in a dtype with too small a range.",
    ),
    ("Go back to a checkpoint before it, with a lower `lr`.", 'dtype="float32" for a few steps.'),
)
MISSING_STEPS = FindingTemplate(
    "steps lost",
    "error",
    ("The journal was edited, or joined from several runs.", "The disk lost a part of it."),
    ("`grupo resume RUN` from an earlier checkpoint writes them again.",),
)
STALLED_RUN = FindingTemplate(
    "nothing happens",
    "error",
    (
        "A reward or a tool hangs, or waits for another machine.",
        "The engine does not answer.",
        "One answer is very long.",
    ),
    (
        "Where it waits: `py-spy dump --pid PID`; the number is in `RUN/lock`.",
        "Stop it with Ctrl-C and go on with `grupo resume RUN`: nothing saved is lost.",
        "A `time_limit` for the reward.",
    ),
)
STOPPED_EARLY = FindingTemplate(
    "stopped before its end",
    "note",
    ("It was stopped or killed, or trains on another machine.",),
    ("`grupo resume RUN` goes on, with the same bits.",),
)
OOM_RETRY = FindingTemplate(
    "memory did not suffice",
    "note",
    ("The micro-batches were too large; the run made them smaller and went on.",),
    (
        "Begin with a smaller `policy.tokens_per_microbatch`.",
        "`--policy.gradient_checkpointing True`: slower, and far less.",
    ),
)


def torn_journal(run: RunData) -> Iterator[Finding]:
    """A journal ends in the middle of a line."""
    if run.files.torn_journals:
        yield TORN_JOURNAL(
            f"The last line of {' and '.join(run.files.torn_journals)} is not whole."
        )


def version_mismatch(run: RunData) -> Iterator[Finding]:
    """Lines lack what ours have."""
    if run.files.missing_fields:
        yield VERSION_MISMATCH(
            f"Lines lack {', '.join(run.files.missing_fields)}: what needs it was not looked at."
        )


def nan_metrics(run: RunData) -> Iterator[Finding]:
    """Metrics that are NaN where something was measured."""
    watched = [n for n in run.metric_names() if not n.startswith(MAY_BE_NAN)]
    bad = {
        n: [int(m["step"]) for m in run.steps if m.get(n, 0.0) != m.get(n, 0.0)] for n in watched
    }
    said = {name: steps for name, steps in bad.items() if steps}
    if said:
        listed = "; ".join(f"{name} at {format_steps(steps)}" for name, steps in said.items())
        yield NAN_METRICS(
            f"{listed}.", locations=step_locations(sorted({s for v in said.values() for s in v}))
        )


def missing_steps(run: RunData) -> Iterator[Finding]:
    """Steps that are missing from the journal, or are there twice."""
    steps = [int(m["step"]) for m in run.steps]
    wrong = [b for a, b in pairwise([-1, *steps]) if b != a + 1]
    if wrong:
        yield MISSING_STEPS(
            f"Steps count from 0 by 1; before {format_steps(wrong)} they do not.",
            locations=step_locations(wrong),
        )


def stalled_run(run: RunData) -> Iterator[Finding]:
    """A process works there, and has not written for long."""
    times = run("time/step").values
    usual = (
        max(MIN_SILENT_SECONDS, STALL_FACTOR * median(times)) if times else 10 * MIN_SILENT_SECONDS
    )
    if run.files.is_locked and run.files.seconds_since_write > usual:
        spent = {
            n.removeprefix("time/"): run.last_window(n).mean for n in run.metric_names("time/")
        }
        longest = max((n for n in spent if n != "step"), key=spent.__getitem__, default="")
        most = f" Most of it goes into `time/{longest}`." if longest else ""
        yield STALLED_RUN(
            f"A process trains there and has written nothing for {run.files.seconds_since_write:.0f} s; a step"
            f" takes {median(times or (0.0,)):.3g} s as a rule.{most}"
        )


def stopped_early(run: RunData) -> Iterator[Finding]:
    """Nobody works there, and it is not done."""
    steps = run.recipe.get("steps", 0)
    if not run.files.is_locked and not run.summary and len(run.steps) < steps:
        yield STOPPED_EARLY(
            f"{len(run.steps)} of {steps} steps are logged, and no process trains there."
        )


def oom_retry(run: RunData) -> Iterator[Finding]:
    """Micro-batches became smaller on the way."""
    budget = run("budget")
    fell = [step for (_, a), (step, b) in pairwise(budget) if b < a]
    if fell:
        yield OOM_RETRY(
            f"`policy.tokens_per_microbatch` fell from {budget.values[0]:.0f} to {budget.values[-1]:.0f}, at"
            f" {format_steps(fell)}.",
            locations=step_locations(fell),
        )
