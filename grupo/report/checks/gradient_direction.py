"""Does learning go the right way: from reward to credit, to the loss, to the weights?"""

from collections.abc import Iterator

from grupo.report.checks.finding import Advice, Finding, Place, of_steps, span
from grupo.report.checks.run_data import FEWEST, Evidence, alike
from grupo.report.read_run import Series

AGAINST = -0.5  # a correlation: shaping changes the order of some rollouts, not of most
BACKWARDS = -0.1  # a cosine: regularisers and momentum turn a push aside, they do not turn it round

AGAINST_REWARD = Advice(
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
WRONG_WAY = Advice(
    "pushed the wrong way",
    "error",
    (
        "The loss has the wrong sign: what earned more than its group is made less likely.",
        "A term of the loss outweighs the advantages.",
    ),
    (
        "Hold the method against the laws: `grupo method check FILE.py:NAME`.",
        "Train with `--method grpo` once: `advantage/push` must be above 0.",
    ),
)
UPHILL = Advice(
    "weights go uphill",
    "error",
    (
        "The optimizer has the wrong sign: `maximize`, a negative learning rate.",
        "Something else moves the weights, and further than the gradient does.",
    ),
    ("Train with the library's `Adam` once: `update/descent` must be above 0.",),
)


def against_reward(run: Evidence) -> Iterator[Finding]:
    """Within groups, what earned more is credited with less."""
    close = alike(run.groups, "advantages")
    if len(run.steps) >= FEWEST and close < AGAINST:
        turned = [g for g in run.groups if alike([g], "advantages") < AGAINST]
        yield AGAINST_REWARD(
            f"Within groups, rewards and advantages have a correlation of {close:.2f};"
            f" {len(turned)} of {len(run.groups)} groups are turned round.",
            at=[Place(g.step, g.task) for g in turned],
        )


def wrong_way(run: Evidence) -> Iterator[Finding]:
    """The loss makes likelier what the credit says is worse."""
    push = run("advantage/push")
    if _backwards(push):
        yield WRONG_WAY(
            f"The cosine of the advantages and of how the loss pushes log-probabilities is"
            f" {push.mean:.2f} over {span(push.steps)}; near 1 it is as it should be.",
            at=of_steps(_worst_first(push)),
        )


def uphill(run: Evidence) -> Iterator[Finding]:
    """The optimizer moves the weights up the gradient, whatever the loss asks for."""
    descent = run("update/descent")
    if _backwards(descent):
        yield UPHILL(
            f"The cosine of how an update moved the weights and of the way down its gradient is"
            f" {descent.mean:.2f} over {span(descent.steps)}; it ought to be above 0.",
            at=of_steps(_worst_first(descent)),
        )


def _backwards(cosines: Series) -> bool:
    return len(cosines.values) >= FEWEST and cosines.mean < BACKWARDS


def _worst_first(cosines: Series) -> list[int]:
    return [step for step, _ in sorted(cosines, key=lambda pair: pair[1])]
