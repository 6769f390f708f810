"""Does it get better, and in the way that was meant?"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from grupo.report.checks.finding import Advice, Finding, Place, of_rollouts, of_steps, span
from grupo.report.checks.run_data import FEWEST, Evidence

COLLAPSED = 0.1  # of the entropy at the beginning
NO_ENTROPY = 0.01  # nats an action: about one token in a thousand is still a choice
TRUNCATED = 0.2  # of the answers: with more, what is learned is to be brief
LONG = 3  # widths of the beginning: shorter runs have no course
SURELY = 5.0  # standard errors: a peak is picked from hundreds of windows, two would be luck
FELL = 0.2  # of what had been gained
GREW = 1.5  # times the length of the beginning
MANY_FAIL = 0.2  # of the rollouts: the groups that are left are too small to compare

COLLAPSE = Advice(
    "entropy collapse",
    "warning",
    ("The policy repeats what first paid.", "`lr` is too high, or the data too few."),
    (
        "Clip(low=0.2, high=0.28), which leaves rare answers more room.",
        "A lower `lr`, or a loss `+ (-0.001) * Entropy()`.",
    ),
)
CUT_OFF = Advice(
    "answers cut off",
    "warning",
    ("`policy.limit` is too small for the tasks.", "The policy does not end its answers."),
    ("A larger `policy.limit`.", "A `policy.stop` text.", "A prompt that asks for brevity."),
)
FAILED = Advice(
    "failed rewards",
    "warning",
    ("The reward raises, hangs or returns no number for some answers.",),
    ("`grupo rollouts --failed` shows them.", "Try the reward on such an answer by hand."),
)
FELL_BACK = Advice(
    "reward fell back",
    "warning",
    ("`lr` is too high, or an update went too far.", "The tasks became harder."),
    ("A lower `lr`, or a schedule that falls.", "A KL to the reference."),
)
LONGER = Advice(
    "longer without reward",
    "warning",
    (
        "`sequence_mean` punishes an action of a long wrong answer less than one of a short one.",
        "The reward pays for length.",
    ),
    ("A token mean or a fixed length in its place: `dapo`, `dr_grpo`.",),
)
HELD_OUT_FELL = Advice(
    "held-out share fell",
    "error",
    (
        "The reward in training is not what the evaluation counts as solved.",
        "The policy was damaged: `lr` is too high.",
    ),
    ("Compare `evaluation.solved` with the reward.", "A lower `lr`."),
)


def entropy_collapse(run: Evidence) -> Iterator[Finding]:
    """The policy became certain before it became right."""
    begin, end = run.begin("entropy"), run.end("entropy")
    low = end.mean < NO_ENTROPY or end.mean < COLLAPSED * begin.mean
    if len(run("entropy").values) >= FEWEST and low and not run.perfect:
        yield COLLAPSE(
            f"Entropy was {begin.mean:.3g} nats at {span(begin.steps)} and is {end.mean:.3g} at"
            f" {span(end.steps)}, at a reward of {run.end('reward/mean').mean:.3g}.",
            at=of_steps(end.steps),
        )


def truncated(run: Evidence) -> Iterator[Finding]:
    """Answers end at their limit, not at their end."""
    cut, longest = run.end("rollouts/truncated"), run.end("length/max").mean
    if cut.mean > TRUNCATED:
        yield CUT_OFF(
            f"{cut.mean:.0%} of the answers of {span(cut.steps)} were cut off; the longest have"
            f" {longest:.0f} actions.",
            at=of_rollouts(run.recent, "cut"),
        )


def failed_rewards(run: Evidence) -> Iterator[Finding]:
    """Rollouts that could not be judged, left out or given a reward all the same."""
    total, covered = (sum(g.count for g in run.groups), sum(g.covered for g in run.groups))
    why = Counter(_reason(failure) for group in run.groups for failure in group.failures)
    count = why.total() + covered
    if count:
        steps = list(dict.fromkeys(g.step for g in run.groups if g.failures or g.covered))
        given = f" {covered} of them were given a reward all the same." * bool(covered)
        often = "".join(f" Most often ({n} x): {text}" for text, n in why.most_common(1))
        yield replace(FAILED, severity="error" if count > MANY_FAIL * total else "warning")(
            f"{count} of {total} rollouts ({count / total:.1%}) could not be judged, at"
            f" {span(steps)}.{given}{often}",
            at=[Place(g.step, g.task) for g in run.groups if g.failures or g.covered],
        )


def fell_back(run: Evidence) -> Iterator[Finding]:
    """The reward was higher once, by more than its noise."""
    values, width = run("reward/mean").values, run.width
    course = [sum(values[i : i + width]) / width for i in range(len(values) - width + 1)]
    peak, fall = max(course, default=0.0), max(course, default=0.0) - sum(course[-1:])
    enough = len(values) >= LONG * width and fall > SURELY * run.error("reward/mean")
    if enough and fall > FELL * (peak - course[0]):
        step = run("reward/mean").steps[course.index(peak) + width // 2]
        yield FELL_BACK(
            f"The reward was {peak:.3g} around step {step} and is {course[-1]:.3g} now.",
            at=of_steps([step]),
        )


def longer_for_nothing(run: Evidence) -> Iterator[Finding]:
    """Answers grow and earn no more."""
    begin, end = run.begin("length/mean"), run.end("length/mean")
    grown = len(run("length/mean").values) >= LONG * run.width and end.mean > GREW * begin.mean
    gain = run.end("reward/mean").mean - run.begin("reward/mean").mean
    if grown and gain <= 2 * run.error("reward/mean"):
        yield LONGER(
            f"Answers grew from {begin.mean:.0f} to {end.mean:.0f} actions while the reward changed"
            f" by {gain:+.3g}."
        )


def held_out_fell(run: Evidence) -> Iterator[Finding]:
    """Held-out tasks are solved less often than before, beyond chance."""
    scores = list(run.summary.get("held_out", {}).values())
    for name in ("greedy", "sampled") if scores else ():
        first, last = scores[0], scores[-1]
        if last["intervals"][name][1] < first["intervals"][name][0]:
            seen = f"{first[name]:.1%} of the held-out tasks at first, {last[name]:.1%} now."
            yield HELD_OUT_FELL(seen, name)


def _reason(failed: str) -> str:
    """Why, without which task and which rollout it was."""
    head, _, rest = failed.partition(": ")
    return rest if rest and head.startswith("task ") else failed
