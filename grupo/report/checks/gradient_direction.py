"""Does learning go the right way: from reward to credit, to the loss, to the weights?"""

from collections.abc import Iterator

from grupo.report.checks.finding import (
    Finding,
    FindingTemplate,
    Location,
    format_steps,
    step_locations,
)
from grupo.report.checks.run_data import MIN_STEPS, RunData, within_group_correlation
from grupo.report.read_run import MetricSeries

MIN_CORRELATION = -0.5  # a correlation: shaping changes the order of some rollouts, not of most
MIN_COSINE = (
    -0.1
)  # a cosine: regularisers and momentum turn a push aside, they do not turn it round

ADVANTAGE_AGAINST_REWARD = FindingTemplate(
    "advantages against the reward",
    "error",
    (
        "The credit has the wrong sign: r - mean(r) became mean(r) - r.",
        "A penalty, of length say, outweighs the reward.",
    ),
    (
        "Hold the method against the laws: `grupo method check FILE.py:NAME`.",
        "Read a group: `grupo rollouts RUN --task KEY` shows rewards and advantages.",
    ),
)
LOSS_SIGN = FindingTemplate(
    "pushed the wrong way",
    "error",
    (
        "The loss has the wrong sign: what earned more than its group is made less likely.",
        "A term of the loss outweighs the advantages.",
    ),
    (
        "Hold the method against the laws: `grupo method check FILE.py:NAME`.",
        "Train with `--method grpo` once: `update/advantage_alignment` must be above 0.",
    ),
)
UPDATE_AGAINST_GRADIENT = FindingTemplate(
    "weights go uphill",
    "error",
    (
        "The optimizer has the wrong sign: `maximize`, a negative learning rate.",
        "Something else moves the weights, and further than the gradient does.",
    ),
    ("Train with the library's `Adam` once: `update/cos_neg_grad` must be above 0.",),
)


def advantage_against_reward(run: RunData) -> Iterator[Finding]:
    """Within groups, what earned more is credited with less."""
    close = within_group_correlation(run.groups, "advantages")
    if len(run.steps) >= MIN_STEPS and close < MIN_CORRELATION:
        turned = [
            g for g in run.groups if within_group_correlation([g], "advantages") < MIN_CORRELATION
        ]
        yield ADVANTAGE_AGAINST_REWARD(
            f"Within groups, rewards and advantages have a correlation of {close:.2f};"
            f" {len(turned)} of {len(run.groups)} groups are turned round.",
            locations=[Location(g.step, g.task) for g in turned],
        )


def loss_sign(run: RunData) -> Iterator[Finding]:
    """The loss makes likelier what the credit says is worse."""
    push = run("update/advantage_alignment")
    if _is_negative(push):
        yield LOSS_SIGN(
            f"The cosine of the advantages and of how the loss pushes log-probabilities is"
            f" {push.mean:.2f} over {format_steps(push.steps)}; near 1 it is as it should be.",
            locations=step_locations(_worst_first(push)),
        )


def update_against_gradient(run: RunData) -> Iterator[Finding]:
    """The optimizer moves the weights up the gradient, whatever the loss asks for."""
    descent = run("update/cos_neg_grad")
    if _is_negative(descent):
        yield UPDATE_AGAINST_GRADIENT(
            f"The cosine of how an update moved the weights and of the way down its gradient is"
            f" {descent.mean:.2f} over {format_steps(descent.steps)}; it ought to be above 0.",
            locations=step_locations(_worst_first(descent)),
        )


def _is_negative(cosines: MetricSeries) -> bool:
    return len(cosines.values) >= MIN_STEPS and cosines.mean < MIN_COSINE


def _worst_first(cosines: MetricSeries) -> list[int]:
    return [step for step, _ in sorted(cosines, key=lambda pair: pair[1])]
