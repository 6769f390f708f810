"""Is the policy updated as it should be?"""

from collections.abc import Iterator
from dataclasses import replace

from grupo.report.checks import advice
from grupo.report.checks.evidence import Evidence, alike
from grupo.report.checks.finding import Advice, Finding, Place, of_steps, span
from grupo.report.checks.signal import FEWEST

NO_LOSS = 1e-6  # below: advantages that cancel, and rounding
NO_GRADIENT = 1e-12  # below: nothing arrives at the weights
EXPLODES = 10.0  # times the norm of the run's beginning: no task changes it that much
KL_MUCH = 0.5  # nats an action: 50 nats on 100 tokens; useful policies stay below a tenth
KL_GROWS = 1.5  # times its value half-way: it does not level off
BACKWARDS = -0.1  # a cosine: regularisers turn a push aside, they do not turn it round
AGAINST = -0.5  # a correlation: shaping changes the order of some rollouts, not of most
FAST = 0.1  # of the weights' size, in one update: what was learned before is overwritten in ten
TOO_FAST = 0.3

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
TOO_HIGH = Advice(
    "learning rate too high",
    "warning",
    ("`lr` is too high for this model: adapters bear some 1e-4, whole models some 1e-6.",),
    ("A tenth of the `lr`, and again until `update/size` is below 0.01.", "A warm-up."),
)
UNMOVED = Advice(
    "weights do not change",
    "error",
    (
        "`lr` is 0, or its schedule has come to 0.",
        "The optimizer has other weights than the policy.",
        "The weights are kept in a dtype too coarse for so small an update.",
    ),
    ("Look at `lr` in the metrics.", 'dtype="float32" once.'),
)
DEAD_ADAPTERS = Advice(
    "dead adapters",
    "error",
    (
        "The adapters have no part in the answer: they lie on layers that it does not pass.",
        "Both halves of an adapter are 0, so that neither has a gradient.",
        "They are frozen, or the gradient is cut off before them (checkpointing).",
    ),
    ("`--policy.lora.targets all-linear`.", "`--policy.lora None` once: weights must move then."),
)


def zero_loss(run: Evidence) -> Iterator[Finding]:
    """The loss is 0 and all is well."""
    losses, norms = run("loss"), run("gradient/norm")
    long = len(losses.values) >= FEWEST
    if long and max(map(abs, losses.values)) <= NO_LOSS and norms.mean > NO_GRADIENT:
        yield advice.ZERO_LOSS(
            f"The loss is 0 at all {len(losses.values)} steps while the gradient's norm is"
            f" {norms.mean:.2g}: the policy learns."
        )


def no_gradient(run: Evidence) -> Iterator[Finding]:
    """Nothing reaches the weights although there is something to learn from."""
    norms, signal = run.end("gradient/norm"), run.end("groups/signal")
    if len(norms.values) >= FEWEST and signal.mean > 0 and max(norms.values) <= NO_GRADIENT:
        yield _dead(run, advice.NO_GRADIENT)(
            f"The gradient's norm is 0 at {span(norms.steps)}, while rewards differ in"
            f" {signal.mean:.0%} of the groups.",
            at=of_steps(norms.steps),
        )


def unmoved(run: Evidence) -> Iterator[Finding]:
    """There is a gradient, and the weights stay as they are."""
    changed, norms = run.end("update/changed"), run.end("gradient/norm")
    still = len(changed.values) >= FEWEST and not any(changed.values)
    if still and norms.mean > NO_GRADIENT:
        yield _dead(run, UNMOVED)(
            f"No weight that was looked at changed at {span(changed.steps)}, while the gradient's"
            f" norm was {norms.mean:.2g} and `lr` {run.end('lr').mean:.2g}.",
            at=of_steps(changed.steps),
        )


def wrong_way(run: Evidence) -> Iterator[Finding]:
    """The loss makes likelier what the credit says is worse."""
    push = run("advantage/push")
    if len(push.values) >= FEWEST and push.mean < BACKWARDS:
        worst = sorted(zip(push.values, push.steps, strict=True))
        yield WRONG_WAY(
            f"The cosine of the advantages and of how the loss pushes log-probabilities is"
            f" {push.mean:.2f} over {span(push.steps)}; near 1 it is as it should be.",
            at=of_steps([step for _, step in worst]),
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


def too_fast(run: Evidence) -> Iterator[Finding]:
    """An update changes so much of the weights that nothing can be kept."""
    size, entropy = run("update/size"), run("entropy")
    if len(size.values) >= FEWEST and size.mean > FAST:
        worst = sorted(zip(size.values, size.steps, strict=True), reverse=True)
        yield replace(TOO_HIGH, severity="error" if size.mean > TOO_FAST else "warning")(
            f"An update moves the weights by {size.mean:.0%} of their size on average, at `lr`"
            f" {run('lr').mean:.2g}. Entropy went from {entropy.first(1).mean:.3g} to"
            f" {entropy.last(1).mean:.3g} nats.",
            at=of_steps([step for _, step in worst]),
        )


def nonfinite_gradient(run: Evidence) -> Iterator[Finding]:
    """Gradients with NaN or infinity, whose updates were left out."""
    series = run("gradient/nonfinite")
    bad = [s for s, v in zip(series.steps, series.values, strict=True) if v > 0]
    if bad:
        yield advice.NONFINITE(
            f"The gradient was NaN or infinite at {span(bad)}; those updates were left out.",
            at=of_steps(bad),
        )


def exploding_gradient(run: Evidence) -> Iterator[Finding]:
    """The gradient's norm grew out of all proportion."""
    begin, end = run.begin("gradient/norm"), run.end("gradient/norm")
    long = len(run("gradient/norm").values) >= 2 * run.width
    if long and end.mean > EXPLODES * begin.mean > 0:
        yield advice.EXPLODES(
            f"The gradient's norm was {begin.mean:.2g} at {span(begin.steps)} and is"
            f" {end.mean:.2g} at {span(end.steps)}.",
            at=of_steps(end.steps),
        )


def growing_kl(run: Evidence) -> Iterator[Finding]:
    """The policy leaves its reference and does not stop."""
    for name in run.names("kl/"):
        half, end = run(name).first(len(run(name).values) // 2).last(run.width), run.end(name)
        if end.mean > KL_MUCH and end.mean > KL_GROWS * half.mean:
            seen = f"{half.mean:.2g} nats an action half-way, {end.mean:.2g} at {span(end.steps)}."
            yield advice.KL_GROWS(seen, name, of_steps(end.steps))


def _dead(run: Evidence, otherwise: Advice) -> Advice:
    """What is to be said where adapters are all that is trained."""
    policy = run.recipe.get("policy", {})
    return DEAD_ADAPTERS if isinstance(policy, dict) and policy.get("lora") else otherwise
