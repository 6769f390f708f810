"""Checks of the rewards: NaN, length bias, leaked answers, slow scoring."""

from collections.abc import Iterator

from grupo.report.checks.finding import (
    Finding,
    FindingTemplate,
    Location,
    format_steps,
    rollout_locations,
    step_locations,
)
from grupo.report.checks.run_data import MIN_STEPS, RunData, within_group_correlation

MIN_GROUPS = 8  # with differing rewards: a correlation over fewer may be chance
MAX_LENGTH_CORRELATION = 0.8  # within groups: length explains two thirds of the reward variance
MIN_LEAKED_FRAC = 0.5  # of the prompts, minus those that contain the answer of another task
MAX_TIME_FRAC = 0.5  # of the time of a step
TAIL_FACTOR = 8.0  # times the mean length
MIN_REWARD_FRAC = 0.8  # of the highest reward: the mean reward is high
MAX_TERM_FRAC = 0.5  # of the value with which a task is solved

NAN_REWARDS = FindingTemplate(
    "NaN rewards",
    "error",
    ("A custom environment returns a NaN reward without an error.",),
    (
        "Return `RewardResult(error=message)` for a rollout that cannot be scored: it is left out.",
        "Look for 0 / 0 and log(0) in the reward.",
    ),
)
REWARD_FOLLOWS_LENGTH = FindingTemplate(
    "reward follows length",
    "warning",
    (
        "The reward increases with length, or a judge model prefers long answers.",
        "Only long answers reach the correct result.",
    ),
    (
        "Read the rollouts with the highest rewards: `grupo rollouts RUN --best 10`.",
        "Evaluate on held-out tasks with a reward that does not depend on length.",
        "Penalise length: `cosine_length`, `alp`, `l1_max`.",
    ),
)
ANSWER_IN_PROMPT = FindingTemplate(
    "answer in the prompt",
    "warning",
    (
        "The prompt was built from a column that contains the solution.",
        "By design: the task is to extract the answer from a text, or to choose from a list.",
    ),
    (
        "Read a prompt: `grupo rollouts RUN --limit 1`.",
        "Check which column is the prompt: `--tasks \"rows.jsonl(prompt='question')\"`.",
    ),
)
REWARD_WITHOUT_SUCCESS = FindingTemplate(
    "reward without success",
    "warning",
    (
        "The reward can be had without solving the task, and the policy does so.",
        "The reward pays for parts of a solution.",
    ),
    (
        "Read the rollouts with the highest rewards: `grupo rollouts RUN --best 10`.",
        "Reward the term that `evaluation.success` names.",
    ),
)
SLOW_REWARDS = FindingTemplate(
    "slow rewards",
    "warning",
    (
        "A reward function or a tool is slow, or processes rollouts one by one.",
        "It hangs until its time limit.",
    ),
    (
        "Make the reward function `async`, or score all rollouts of a group in one call.",
        "Use a smaller `time_limit`, and read `grupo rollouts RUN --failed`.",
        "Set `max_staleness=1`: the next step is generated meanwhile.",
    ),
)
LONG_TAIL = FindingTemplate(
    "long tail",
    "note",
    ("The longest rollouts of a step are generated alone, after all others have ended.",),
    (
        "Use a smaller `policy.max_new_tokens`, `policy.stop_strings`, or `ChunkedThinking`.",
        "Set `max_staleness=1`: the update runs at the same time.",
    ),
)


def nan_rewards(run: RunData) -> Iterator[Finding]:
    """Rollouts with a NaN reward and no error."""
    bad = rollout_locations(run.groups, "nan_rollouts")
    if bad:
        steps = list(dict.fromkeys(location.step for location in bad))
        yield NAN_REWARDS(
            f"{len(bad)} rollouts have a NaN reward, at {format_steps(steps)}; their groups have no"
            " advantages and are not trained on.",
            locations=bad,
        )


def reward_follows_length(run: RunData) -> Iterator[Finding]:
    """Within groups, the reward is nearly a function of the length."""
    differing = [
        g for g in run.recent_groups if len(set(g.rewards)) > 1 and len(set(g.lengths)) > 1
    ]
    correlation = within_group_correlation(differing, "lengths")
    begin = run.first_window("completions/length_mean")
    end = run.last_window("completions/length_mean")
    if len(differing) >= MIN_GROUPS and correlation > MAX_LENGTH_CORRELATION:
        clearest = sorted(
            differing, key=lambda g: within_group_correlation([g], "lengths"), reverse=True
        )
        yield REWARD_FOLLOWS_LENGTH(
            f"Within {len(differing)} groups of the last steps, rewards and lengths have a"
            f" correlation of {correlation:.2f}. The mean length was {begin.mean:.1f} at"
            f" {format_steps(begin.steps)} and is {end.mean:.1f} at {format_steps(end.steps)}.",
            locations=[
                Location(g.step, g.task, _longest_rollout(g.scored_rollouts, g.lengths))
                for g in clearest
            ],
        )


def reward_without_success(run: RunData) -> Iterator[Finding]:
    """The mean reward is near the highest one, and the term that decides on success is low."""
    success = run.success
    reward = run.last_window("reward/mean")
    solved = run.last_window(f"reward/{success.reward_term}")
    best = run.reward_range[1]
    if len(solved.values) < MIN_STEPS or success.min_reward <= 0 or best <= 0:
        return
    is_low = solved.mean < MAX_TERM_FRAC * success.min_reward
    if is_low and reward.mean >= MIN_REWARD_FRAC * best:
        yield REWARD_WITHOUT_SUCCESS(
            f"At {format_steps(solved.steps)}, the mean reward is {reward.mean:.3g}, of at most"
            f" {best:.3g}. The mean of the reward term {success.reward_term!r} is"
            f" {solved.mean:.3g}; a task is solved from {success.min_reward:g} on.",
            locations=step_locations(solved.steps),
        )


def answer_in_prompt(run: RunData) -> Iterator[Finding]:
    """Prompts contain their own reference answers, and rarely those of other tasks."""
    leaked = [g for g in run.groups if g.answer_in_prompt]
    count = len(run.groups)
    by_chance = sum(g.other_answer_in_prompt for g in run.groups)
    if count >= MIN_GROUPS and len(leaked) - by_chance >= MIN_LEAKED_FRAC * count:
        yield ANSWER_IN_PROMPT(
            f"{len(leaked)} of {count} prompts contain the reference answer, {by_chance} that of"
            " the previous task.",
            locations=[Location(g.step, g.task) for g in leaked],
        )


def slow_rewards(run: RunData) -> Iterator[Finding]:
    """Scoring takes more than half of a step."""
    fraction = run.last_window("time_frac/score")
    seconds = run.last_window("time/score")
    if len(fraction.values) >= MIN_STEPS and fraction.mean > MAX_TIME_FRAC:
        yield SLOW_REWARDS(
            f"{fraction.mean:.0%} of the time of {format_steps(fraction.steps)}, {seconds.mean:.3g}"
            " s per step, is spent waiting for rewards and tools."
        )


def long_tail(run: RunData) -> Iterator[Finding]:
    """A few rollouts are much longer than the mean, and generation takes most of the time."""
    longest = run.last_window("completions/length_max").mean
    mean = run.last_window("completions/length_mean").mean
    fraction = run.last_window("time_frac/generate")
    is_dominant = len(fraction.values) >= MIN_STEPS and fraction.mean > MAX_TIME_FRAC
    if is_dominant and longest > TAIL_FACTOR * mean:
        yield LONG_TAIL(
            f"The longest rollout of a step has {longest:.0f} actions, the mean is {mean:.0f};"
            f" generation takes {fraction.mean:.0%} of the time."
        )


def _longest_rollout(rollouts: tuple[int, ...], lengths: tuple[float, ...]) -> int:
    return max(zip(lengths, rollouts, strict=True))[1]
