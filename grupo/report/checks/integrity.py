"""Is what the run left behind whole, and does the run still go?"""

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from grupo.report.checks.finding import Advice, Finding, of_steps, span
from grupo.report.checks.run_data import Evidence

# of these the mean over nothing is NaN: no rollout was judged, or nothing was learned from
MAY_BE_NAN = ("reward/", "groups/signal", "advantage/zero", "length/max", "gradient/", "loss")
QUIET = 60.0  # seconds: below, nobody worries
LONG = 20.0  # times the usual time of a step

HALF_WRITTEN = Advice(
    "half written",
    "note",
    (
        "The run is writing just now.",
        "It was stopped while it wrote: killed, or the disk was full.",
    ),
    ("`grupo resume RUN` cuts it off and does that step again.",),
)
OTHER_VERSION = Advice(
    "another version",
    "warning",
    ("The run was begun with another version of grupo, which wrote other names.",),
    ("Read it with the version that it was begun with.",),
)
NOT_A_NUMBER = Advice(
    "not a number",
    "error",
    (
        "The weights hold NaN: an update went wrong, or they were loaded so.",
        "A number overflowed in a dtype with too small a range.",
    ),
    ("Go back to a checkpoint before it, with a lower `lr`.", 'dtype="float32" for a few steps.'),
)
STEPS_LOST = Advice(
    "steps lost",
    "error",
    ("The journal was edited, or joined from several runs.", "The disk lost a part of it."),
    ("`grupo resume RUN` from an earlier checkpoint writes them again.",),
)
STANDS_STILL = Advice(
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
STOPPED = Advice(
    "stopped before its end",
    "note",
    ("It was stopped or killed, or trains on another machine.",),
    ("`grupo resume RUN` goes on, with the same bits.",),
)
LESS_MEMORY = Advice(
    "memory did not suffice",
    "note",
    ("The micro-batches were too large; the run made them smaller and went on.",),
    (
        "Begin with a smaller `policy.budget`.",
        "`--policy.checkpointing True`: slower, and far less.",
    ),
)


def half_written(run: Evidence) -> Iterator[Finding]:
    """A journal ends in the middle of a line."""
    if run.files.torn:
        yield HALF_WRITTEN(f"The last line of {' and '.join(run.files.torn)} is not whole.")


def other_version(run: Evidence) -> Iterator[Finding]:
    """Lines lack what ours have."""
    if run.files.lacking:
        yield OTHER_VERSION(
            f"Lines lack {', '.join(run.files.lacking)}: what needs it was not looked at."
        )


def not_a_number(run: Evidence) -> Iterator[Finding]:
    """Metrics that are NaN where something was measured."""
    watched = [n for n in run.names() if not n.startswith(MAY_BE_NAN)]
    bad = {
        n: [int(m["step"]) for m in run.steps if m.get(n, 0.0) != m.get(n, 0.0)] for n in watched
    }
    said = {name: steps for name, steps in bad.items() if steps}
    if said:
        listed = "; ".join(f"{name} at {span(steps)}" for name, steps in said.items())
        yield NOT_A_NUMBER(f"{listed}.", at=of_steps(sorted({s for v in said.values() for s in v})))


def steps_lost(run: Evidence) -> Iterator[Finding]:
    """Steps that are missing from the journal, or are there twice."""
    steps = [int(m["step"]) for m in run.steps]
    wrong = [b for a, b in pairwise([-1, *steps]) if b != a + 1]
    if wrong:
        yield STEPS_LOST(
            f"Steps count from 0 by 1; before {span(wrong)} they do not.", at=of_steps(wrong)
        )


def stands_still(run: Evidence) -> Iterator[Finding]:
    """A process works there, and has not written for long."""
    times = run("time/step").values
    usual = max(QUIET, LONG * median(times)) if times else 10 * QUIET
    if run.files.held and run.files.silent > usual:
        spent = {n.removeprefix("time/"): run.end(n).mean for n in run.names("time/")}
        longest = max((n for n in spent if n != "step"), key=spent.__getitem__, default="")
        most = f" Most of it goes into `time/{longest}`." if longest else ""
        yield STANDS_STILL(
            f"A process trains there and has written nothing for {run.files.silent:.0f} s; a step"
            f" takes {median(times or (0.0,)):.3g} s as a rule.{most}"
        )


def stopped(run: Evidence) -> Iterator[Finding]:
    """Nobody works there, and it is not done."""
    steps = run.recipe.get("steps", 0)
    if not run.files.held and not run.summary and len(run.steps) < steps:
        yield STOPPED(f"{len(run.steps)} of {steps} steps are logged, and no process trains there.")


def less_memory(run: Evidence) -> Iterator[Finding]:
    """Micro-batches became smaller on the way."""
    budget = run("budget")
    fell = [step for (_, a), (step, b) in pairwise(budget) if b < a]
    if fell:
        yield LESS_MEMORY(
            f"`policy.budget` fell from {budget.values[0]:.0f} to {budget.values[-1]:.0f}, at"
            f" {span(fell)}.",
            at=of_steps(fell),
        )
