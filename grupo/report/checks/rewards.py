"""Does the reward pay for what is meant?"""

from collections.abc import Iterator

from grupo.report.checks.finding import Advice, Finding, Place, of_rollouts, span
from grupo.report.checks.run_data import FEWEST, Evidence, alike

FEWEST_GROUPS = 8  # that differ: a correlation of fewer may be luck
BY_LENGTH = 0.8  # a correlation within groups: length says two thirds of the reward
TOLD = 0.5  # of the prompts, beyond those that hold the answer of another task
WAITING = 0.5  # of the time: as long as everything else
TAIL = 8.0  # times the mean length: what all the others wait for

NOT_NUMBERS = Advice(
    "NaN rewards",
    "error",
    ("A world of your own gives a reward that is no number, and does not say that it failed.",),
    (
        "Give `Verdict(failed=why)` where a rollout cannot be judged; then it is left out.",
        "Look for 0 / 0 and log(0) in the reward.",
    ),
)
FOLLOWS_LENGTH = Advice(
    "reward follows length",
    "warning",
    (
        "The reward pays for length, or a judge likes long answers.",
        "Only long answers get far enough to be right.",
    ),
    (
        "Read the best and the longest: `grupo rollouts RUN --best 10`.",
        "Judge by the held-out tasks, by a reward that does not see the length.",
        "A price on length: `cosine_length`, `alp`, `l1_max`.",
    ),
)
LEAK = Advice(
    "answer in the prompt",
    "warning",
    (
        "The prompt was made from a row that has the solution in it.",
        "By design: the answer is to be found in a text, or chosen from a list.",
    ),
    (
        "Read a prompt: `grupo rollouts RUN --limit 1`.",
        "Which column is the prompt? `--tasks \"rows.jsonl(prompt='question')\"`.",
    ),
)
SLOW_JUDGES = Advice(
    "waiting for judges",
    "warning",
    (
        "A reward or a tool is slow, or judges one answer after the other.",
        "It hangs until its time limit is over.",
    ),
    (
        "Make the reward `async`, or judge all rollouts of a group in one call.",
        "A smaller `time_limit`, and `grupo rollouts RUN --failed`.",
        "`staleness` 1: the next step is sampled meanwhile.",
    ),
)
LONG_TAIL = Advice(
    "a few long answers",
    "note",
    ("The longest answers of a step are drawn alone, when all others have ended.",),
    (
        "A smaller `policy.limit`, a `policy.stop` text, or answers in chunks (`Chunked`).",
        "`staleness` 1: the update of one step runs beside.",
    ),
)


def nan_rewards(run: Evidence) -> Iterator[Finding]:
    """Rewards that are no number, and are not said to have failed."""
    bad = of_rollouts(run.groups, "nameless")
    if bad:
        steps = list(dict.fromkeys(place.step for place in bad))
        yield NOT_NUMBERS(
            f"{len(bad)} rollouts earned NaN, at {span(steps)}; a group with one has no"
            " advantages, and no update is made of it.",
            at=bad,
        )


def follows_length(run: Evidence) -> Iterator[Finding]:
    """Within groups, the longer answer earns more, and hardly anything else matters."""
    differing = [g for g in run.recent if len(set(g.rewards)) > 1 and len(set(g.lengths)) > 1]
    close, begin, end = (
        alike(differing, "lengths"),
        run.begin("length/mean"),
        run.end("length/mean"),
    )
    if len(differing) >= FEWEST_GROUPS and close > BY_LENGTH:
        best = sorted(differing, key=lambda g: alike([g], "lengths"), reverse=True)
        yield FOLLOWS_LENGTH(
            f"Within {len(differing)} groups of the last steps, rewards and lengths have a"
            f" correlation of {close:.2f}. Answers had {begin.mean:.1f} actions at"
            f" {span(begin.steps)} and have {end.mean:.1f} at {span(end.steps)}.",
            at=[Place(g.step, g.task, _longest(g.rollouts, g.lengths)) for g in best],
        )


def told_answers(run: Evidence) -> Iterator[Finding]:
    """Prompts hold their own answers, and not those of other tasks."""
    told = [g for g in run.groups if g.told]
    count, chance = len(run.groups), sum(g.told_other for g in run.groups)
    if count >= FEWEST_GROUPS and len(told) - chance >= TOLD * count:
        yield LEAK(
            f"{len(told)} of {count} prompts hold the right answer, {chance} that of the task"
            " before.",
            at=[Place(g.step, g.task) for g in told],
        )


def slow_judges(run: Evidence) -> Iterator[Finding]:
    """Most of a step is spent waiting for rewards or tools."""
    share, judge = run.end("share/judge"), run.end("time/judge")
    if len(share.values) >= FEWEST and share.mean > WAITING:
        yield SLOW_JUDGES(
            f"{share.mean:.0%} of the time of {span(share.steps)}, {judge.mean:.3g} s a step, is"
            " spent waiting for rewards and tools."
        )


def long_tail(run: Evidence) -> Iterator[Finding]:
    """A few answers are many times as long as the rest, and sampling takes most of the time."""
    longest, mean, share = (run.end(n) for n in ("length/max", "length/mean", "share/sample"))
    if len(share.values) >= FEWEST and share.mean > WAITING and longest.mean > TAIL * mean.mean:
        yield LONG_TAIL(
            f"The longest answer of a step has {longest.mean:.0f} actions, the mean one"
            f" {mean.mean:.0f}; sampling takes {share.mean:.0%} of the time."
        )


def _longest(rollouts: tuple[int, ...], lengths: tuple[float, ...]) -> int:
    return max(zip(lengths, rollouts, strict=True))[1]
