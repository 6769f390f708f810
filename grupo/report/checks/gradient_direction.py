"""Checks of the sign of learning: rewards, advantages, loss gradient, weight update."""

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
from grupo.report.read_run import MetricSeries

MIN_CORRELATION = -0.5  # reward shaping changes the order of some rollouts, not of most
# regularisers and momentum turn an update aside, they do not reverse it
MIN_COSINE = -0.1

NONFINITE_ADVANTAGES = FindingTemplate(
    "non-finite advantages",
    "error",
    (
        "The advantage estimator divides by 0, for example by the standard deviation of a group"
        " whose rewards are equal.",
        "A reward is infinite.",
    ),
    (
        "Add a small number to the divisor, as `ScaleByStd(eps=1e-6)` does.",
        "Check the properties of the method: `grupo methods check FILE.py:NAME`.",
    ),
)
ADVANTAGE_AGAINST_REWARD = FindingTemplate(
    "advantages oppose rewards",
    "error",
    (
        "The advantage estimator has the wrong sign: r - mean(r) became mean(r) - r.",
        "A penalty, for example on length, outweighs the reward.",
    ),
    (
        "Check the properties of the method: `grupo methods check FILE.py:NAME`.",
        "Compare the rewards and advantages of a group: `grupo rollouts RUN --task KEY`.",
    ),
)
LOSS_SIGN = FindingTemplate(
    "loss has the wrong sign",
    "error",
    (
        "The loss is negated: rollouts with a reward above the group mean become less likely.",
        "A regulariser in the loss outweighs the advantages.",
    ),
    (
        "Check the properties of the method: `grupo methods check FILE.py:NAME`.",
        "Train with `--method grpo` once: `update/advantage_alignment` must be above 0.",
    ),
)
UPDATE_AGAINST_GRADIENT = FindingTemplate(
    "gradient ascent",
    "error",
    (
        "The optimizer has the wrong sign: `maximize`, a negative learning rate.",
        "Other code changes the weights by more than the gradient does.",
    ),
    ("Train with the library's `Adam` once: `update/cos_neg_grad` must be above 0.",),
)


def nonfinite_advantages(run: RunData) -> Iterator[Finding]:
    """Rollouts with a NaN or infinite advantage, whose updates were skipped."""
    bad = rollout_locations(run.groups, "nonfinite_advantages")
    if bad:
        steps = list(dict.fromkeys(location.step for location in bad))
        yield NONFINITE_ADVANTAGES(
            f"{len(bad)} rollouts have a NaN or infinite advantage, at {format_steps(steps)}; these"
            " updates were skipped.",
            locations=bad,
        )


def advantage_against_reward(run: RunData) -> Iterator[Finding]:
    """Within groups, rollouts with higher rewards have lower advantages."""
    correlation = within_group_correlation(run.groups, "advantages")
    if len(run.steps) >= MIN_STEPS and correlation < MIN_CORRELATION:
        reversed_groups = [
            g for g in run.groups if within_group_correlation([g], "advantages") < MIN_CORRELATION
        ]
        yield ADVANTAGE_AGAINST_REWARD(
            f"Within groups, rewards and advantages have a correlation of {correlation:.2f};"
            f" it is negative in {len(reversed_groups)} of {len(run.groups)} groups.",
            locations=[Location(g.step, g.task) for g in reversed_groups],
        )


def loss_sign(run: RunData) -> Iterator[Finding]:
    """The loss gradient raises the log-probabilities of actions with negative advantages."""
    alignment = run("update/advantage_alignment")
    if _is_negative(alignment):
        yield LOSS_SIGN(
            "The cosine between the advantages and the negative gradient of the loss in the"
            f" log-probabilities is {alignment.mean:.2f} over {format_steps(alignment.steps)};"
            " expected: near 1.",
            locations=step_locations(_worst_first(alignment)),
        )


def update_against_gradient(run: RunData) -> Iterator[Finding]:
    """The optimizer moves the weights along the gradient, not against it."""
    descent = run("update/cos_neg_grad")
    if _is_negative(descent):
        yield UPDATE_AGAINST_GRADIENT(
            "The cosine between the weight update and the negative gradient is"
            f" {descent.mean:.2f} over {format_steps(descent.steps)}; expected: above 0.",
            locations=step_locations(_worst_first(descent)),
        )


def _is_negative(cosines: MetricSeries) -> bool:
    return len(cosines.values) >= MIN_STEPS and cosines.mean < MIN_COSINE


def _worst_first(cosines: MetricSeries) -> list[int]:
    return [step for step, _ in sorted(cosines, key=lambda pair: pair[1])]
