"""The page of documentation with the biases of all methods: `docs/bias.md`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from grupo.catalogue.entries import methods
from grupo.evidence.exact.environment import FiniteEnv
from grupo.evidence.exact.gradient import GradientMoments
from grupo.evidence.exact.measure import Bias
from grupo.evidence.exact.reach import obstacle
from grupo.evidence.exact.standard import MOVED, SETTINGS

COMMAND = "python -m grupo.evidence.exact docs/bias.md"
UNBIASED = 0.05  # degrees, shown as 0.0
ALIGNED = 1.0  # degrees
MISSING = "-"
COLUMNS: Mapping[str, Callable[[Bias], str]] = {
    "method": lambda row: row.name,
    "tasks, G = 2": lambda row: _degrees(row.moments["pairs"].angle),
    "G = 4": lambda row: _degrees(row.moments["fours"].angle),
    "G = 8": lambda row: _degrees(row.moments["tasks"].angle),
    "length": lambda row: _number(row.moments["tasks"].length_ratio),
    "variance": lambda row: _number(row.variance),
    "graded": lambda row: _degrees(row.moments["graded"].angle),
    "lengths": lambda row: _degrees(row.moments["lengths"].angle),
    "moved": lambda row: _degrees(row.moments["moved"].angle),
    "moved, length": lambda row: _number(row.moments["moved"].length_ratio),
}
FIRST_UPDATE_COLUMNS = tuple(COLUMNS)[1:-2]


def bias_page(choices: Sequence[Bias], biases: Mapping[str, Bias]) -> str:
    """The page, in Markdown.

    Args:
        choices: The rows of single choices.
        biases: The rows of the methods, by key.
    """
    ranked = sorted(biases.values(), key=_rank)
    sections = [
        f"<!-- written by `{COMMAND}` -->",
        "# Bias and variance of all methods",
        _introduction(len(ranked)),
        "![Angles of the methods](images/bias.svg)",
        "## How to read the table",
        _columns_section(),
        "## Single choices",
        "REINFORCE, in which each row changes one thing, or two.",
        table(choices),
        "## Methods",
        "Sorted by the largest of the three angles of the first update.",
        table(ranked),
        "## What the numbers show",
        _facts(choices, biases),
        "## Methods that are not in the table",
        _not_measured(),
        "## Measure your own",
        _own_method(),
    ]
    return "\n\n".join(sections) + "\n"


def table(rows: Iterable[Bias]) -> str:
    """The rows as a Markdown table."""
    lines = [[*COLUMNS], ["---", *["--:"] * (len(COLUMNS) - 1)], *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cells(row: Bias) -> list[str]:
    """The cells of a row. They are rounded, so that they do not differ between processors."""
    return [cell(row) for cell in COLUMNS.values()]


def _rank(row: Bias) -> tuple[bool, float, str]:
    """Sorts by the largest angle as it is shown; rows without one come last."""
    angle = row.largest_angle
    is_missing = angle != angle
    return is_missing, 0.0 if is_missing else float(_degrees(angle)), row.name.lower()


def _degrees(angle: float) -> str:
    return MISSING if angle != angle else f"{abs(round(angle, 6)):.1f}"


def _number(x: float) -> str:
    """Three significant digits; a tie such as 0.4375 is rounded alike everywhere."""
    return MISSING if x != x else f"{float(f'{x:.9g}'):.3g}"


def _introduction(count: int) -> str:
    return f"""\
Policy gradient methods estimate the gradient of the expected reward from a few rollouts. On
environments with so few answers that every group of rollouts can be listed, the expectation of the
estimate and its variance can be computed instead of sampled: {count} methods of the library run
here as they are (filter, advantage estimator, loss, aggregation), in float64, on every possible
step. Nothing is random, and nothing is trained.

Three environments with a policy that is a table of logits:

* *tasks*: a step has a group of each of three tasks, with a correct answer (reward 1) and a wrong
  one (0). The policy is correct with probability 0.05, 0.4 and 0.9.
* *graded*: one task, three answers with rewards 0, 0.3 and 1 and probabilities 0.3, 0.5 and 0.2.
* *lengths*: one task, four answers: correct ones of 1 and 3 tokens, wrong ones of 2 and 3. Their
  probabilities are 0.2, 0.25, 0.3 and 0.25."""


def _columns_section() -> str:
    return f"""\
* Angles, in degrees, are between the expected gradient and the gradient of the expected reward (the
  mean over tasks). An unbiased estimator has 0.0, however it is scaled. *G* is the group size, 8
  where none is named. "{MISSING}": there is no gradient.
* *length*: length of the expected gradient over that of the true gradient, on *tasks*. A constant
  factor acts like another learning rate, and under Adam hardly at all.
* *variance*: trace of the covariance of the gradient on *tasks*, when the estimate is scaled to
  the same expected length; relative to REINFORCE without a baseline. Smaller is better, between
  methods of the same direction.
* *moved*: the policy that is trained is no longer the one that sampled: logits have moved by up to
  {MOVED} nats along the gradient. The ratios of the hard task's correct answer (1.33) and of
  the easy task's wrong answer (0.76) are then outside 0.8 to 1.2. A clip that acts is meant to stop
  such answers, so an angle here is no defect: the column shows where it acts.

The angle is measured against the expected reward, also for methods that seek something else: the
log of the success probability (MaxRL), the best of a group (pass@k), short answers (Kimi, ACE,
GRPO-lambda, GFPO), a low entropy without rewards (RENT, EM-RL, Intuitor). For these it tells how
far the goals are apart. Reference policy and sampler equal the policy before the update; the term
`correct` equals the reward; schedules are midway; all other arguments are defaults, and GFPO and
PODS keep the same fraction of a group as by default; MC-GRPO has one rollout more. A step's batch
is not split into minibatches, and dynamic sampling does not replace dropped groups. No answer is
overlong. Real tasks have millions of answers: the direction of an effect carries over, its size
need not."""


def _facts(choices: Sequence[Bias], biases: Mapping[str, Bias]) -> str:
    """Facts counted in the table, so that they follow its numbers."""
    rows = list(biases.values())
    shown = {row.name: dict(zip(COLUMNS, cells(row), strict=True)) for row in (*choices, *rows)}
    std = shown["… and divided by the group's std"]
    dropped = shown["mean of the others, groups of equal rewards dropped"]
    sequence, token = (shown[f"mean of the others, `{x}_mean`"] for x in ("sequence", "token"))
    unbiased = [row for row in rows if row.largest_angle < UNBIASED]
    like_grpo = [row for row in rows if _first_update(row) == _first_update(biases["grpo"])]
    best = min(unbiased, key=lambda row: (round(row.variance, 6), row.name))
    facts = [
        f"{len(unbiased)} of {len(rows)} methods are unbiased in all three environments at their"
        f" first update: {_names(unbiased)}.",
        f"The mean of the others is no baseline of least variance: on *tasks* it saves"
        f" {1 - float(shown['baseline: mean of the others']['variance']):.0%} against none, a"
        f" constant of 1/2 (TOPR) {1 - float(shown[best.name]['variance']):.0%}. With two answers"
        f" the best constant of a task is 1 - p, far from the mean p where p is near 0 or 1.",
        f"Dividing by the group's standard deviation turns the gradient by {std['G = 8']} degrees"
        f" between tasks at groups of 8, by {std['G = 4']} at 4 and by {std['tasks, G = 2']} at 2:"
        f" with two rollouts all informative groups have the same deviation. Between answers of"
        f" one task with graded rewards it is {std['graded']} degrees.",
        f"The mean over sequences (`sequence_mean`) turns an unbiased estimator by"
        f" {sequence['lengths']} degrees in *lengths*, the mean over tokens by {token['lengths']},"
        f" a constant by nothing. Both means favour the shorter of two correct answers.",
        f"Dropping groups of equal rewards is not neutral ({dropped['G = 8']} degrees), although"
        f" they have no gradient: the mean is over fewer rollouts in those steps in which few"
        f" tasks are informative.",
        f"GRPO and {len(like_grpo) - 1} other methods have the same row but for the last two"
        f" columns: {_names(like_grpo)}. Where every update is the first one, they are one"
        f" method, in these environments.",
        f"With graded rewards, these follow the probability of a reward above 0, {_threshold()}"
        f" degrees from the gradient of the expected reward: {_names(_thresholded(rows))}.",
    ]
    return "\n".join(f"* {fact}" for fact in facts)


def _names(rows: Iterable[Bias]) -> str:
    return ", ".join(sorted((row.name for row in rows), key=str.lower))


def _threshold_gradient() -> GradientMoments:
    """The gradient of the probability of a reward above 0, as the expected one of *graded*."""
    env = SETTINGS["graded"].env
    tasks = (replace(task, rewards=tuple(float(r > 0) for r in task.rewards)) for task in env.tasks)
    gradient = FiniteEnv(tuple(tasks)).policy_gradient(env.logits)
    return GradientMoments(gradient, 0.0, env.policy_gradient(env.logits))


def _threshold() -> str:
    return _degrees(_threshold_gradient().angle)


def _thresholded(rows: Iterable[Bias]) -> list[Bias]:
    """The methods that follow the probability of a reward above 0."""
    gradient = _threshold_gradient().expected
    return [row for row in rows if replace(row.moments["graded"], true=gradient).angle < ALIGNED]


def _first_update(row: Bias) -> list[str]:
    shown = dict(zip(COLUMNS, cells(row), strict=True))
    return [shown[name] for name in FIRST_UPDATE_COLUMNS]


def _not_measured() -> str:
    """The other methods by reason."""
    reasons = [(obstacle(entry.method), entry) for entry in methods()]
    pairs = sorted(((why, e) for why, e in reasons if why), key=lambda x: (x[0], x[1].key))
    lines = [
        f"| {', '.join(f'[{entry.name}](methods/{entry.key}.md)' for _, entry in group)} | {why} |"
        for why, group in groupby(pairs, key=lambda pair: pair[0])
    ]
    return "\n".join(["| methods | reason |", "| --- | --- |", *lines])


def _own_method() -> str:
    return f"""\
```python
from grupo.evidence.exact import FiniteEnv, FiniteTask, expected_gradient
from grupo.methods.dapo import dapo

env = FiniteEnv((FiniteTask(rewards=(1.0, 0.0), probabilities=(0.25, 0.75)),))
moments = expected_gradient(dapo(max_length=64, overlong_buffer=16, group_size=8), env)
assert moments.angle < 1e-9  # degrees; also .length_ratio, .variance, .expected, .true
```

`grupo methods check METHOD` prints the angles of a method in the three environments. This page and
its figure are written by `{COMMAND}`, in about a minute on one core."""
