"""Does the reward pay for what is meant?"""

from collections.abc import Iterator

from grupo.report.checks.finding import (
    Finding,
    FindingTemplate,
    Location,
    format_steps,
    rollout_locations,
)
from grupo.report.checks.run_data import MIN_STEPS, RunData, within_group_correlation

MIN_GROUPS = 8  # that differ: a correlation of fewer may be luck
MAX_LENGTH_CORRELATION = 0.8  # a correlation within groups: length says two thirds of the reward
MIN_LEAKED_FRAC = 0.5  # of the prompts, beyond those that hold the answer of another task
MAX_TIME_FRAC = 0.5  # of the time: as long as everything else
TAIL_FACTOR = 8.0  # times the mean length: what all the others wait for

NAN_REWARDS = FindingTemplate(
    "NaN rewards",
    "error",
    ("A world of your own gives a reward that is no number, and does not say that it failed.",),
    (
        "Give `Verdict(error=why)` where a rollout cannot be judged; then it is left out.",
        "Look for 0 / 0 and log(0) in the reward.",
    ),
)
REWARD_FOLLOWS_LENGTH = FindingTemplate(
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
ANSWER_IN_PROMPT = FindingTemplate(
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
SLOW_REWARDS = FindingTemplate(
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
LONG_TAIL = FindingTemplate(
    "a few long answers",
    "note",
    ("The longest answers of a step are drawn alone, when all others have ended.",),
    (
        "A smaller `policy.max_new_tokens`, a `policy.stop_strings` text, or answers in chunks (`Chunked`).",
        "`staleness` 1: the update of one step runs beside.",
    ),
)


def nan_rewards(run: RunData) -> Iterator[Finding]:
    """Rewards that are no number, and are not said to have failed."""
    bad = rollout_locations(run.groups, "nameless")
    if bad:
        steps = list(dict.fromkeys(place.step for place in bad))
        yield NAN_REWARDS(
            f"{len(bad)} rollouts earned NaN, at {format_steps(steps)}; a group with one has no"
            " advantages, and no update is made of it.",
            locations=bad,
        )


def reward_follows_length(run: RunData) -> Iterator[Finding]:
    """Within groups, the longer answer earns more, and hardly anything else matters."""
    differing = [
        g for g in run.recent_groups if len(set(g.rewards)) > 1 and len(set(g.lengths)) > 1
    ]
    close, begin, end = (
        within_group_correlation(differing, "lengths"),
        run.first_window("completions/length_mean"),
        run.last_window("completions/length_mean"),
    )
    if len(differing) >= MIN_GROUPS and close > MAX_LENGTH_CORRELATION:
        best = sorted(
            differing, key=lambda g: within_group_correlation([g], "lengths"), reverse=True
        )
        yield REWARD_FOLLOWS_LENGTH(
            f"Within {len(differing)} groups of the last steps, rewards and lengths have a"
            f" correlation of {close:.2f}. Answers had {begin.mean:.1f} actions at"
            f" {format_steps(begin.steps)} and have {end.mean:.1f} at {format_steps(end.steps)}.",
            locations=[
                Location(g.step, g.task, _longest_rollout(g.scored_rollouts, g.lengths))
                for g in best
            ],
        )


def answer_in_prompt(run: RunData) -> Iterator[Finding]:
    """Prompts hold their own answers, and not those of other tasks."""
    told = [g for g in run.groups if g.answer_in_prompt]
    count, chance = len(run.groups), sum(g.other_answer_in_prompt for g in run.groups)
    if count >= MIN_GROUPS and len(told) - chance >= MIN_LEAKED_FRAC * count:
        yield ANSWER_IN_PROMPT(
            f"{len(told)} of {count} prompts hold the right answer, {chance} that of the task"
            " before.",
            locations=[Location(g.step, g.task) for g in told],
        )


def slow_rewards(run: RunData) -> Iterator[Finding]:
    """Most of a step is spent waiting for rewards or tools."""
    share, judge = run.last_window("time_frac/score"), run.last_window("time/score")
    if len(share.values) >= MIN_STEPS and share.mean > MAX_TIME_FRAC:
        yield SLOW_REWARDS(
            f"{share.mean:.0%} of the time of {format_steps(share.steps)}, {judge.mean:.3g} s a step, is"
            " spent waiting for rewards and tools."
        )


def long_tail(run: RunData) -> Iterator[Finding]:
    """A few answers are many times as long as the rest, and sampling takes most of the time."""
    longest, mean, share = (
        run.last_window(n)
        for n in ("completions/length_max", "completions/length_mean", "time_frac/generate")
    )
    if (
        len(share.values) >= MIN_STEPS
        and share.mean > MAX_TIME_FRAC
        and longest.mean > TAIL_FACTOR * mean.mean
    ):
        yield LONG_TAIL(
            f"The longest answer of a step has {longest.mean:.0f} actions, the mean one"
            f" {mean.mean:.0f}; sampling takes {share.mean:.0%} of the time."
        )


def _longest_rollout(rollouts: tuple[int, ...], lengths: tuple[float, ...]) -> int:
    return max(zip(lengths, rollouts, strict=True))[1]
