"""Do the weights move, and as far as they should?"""

from collections.abc import Iterator
from dataclasses import replace

from grupo.report.checks.finding import Advice, Finding, of_steps, span
from grupo.report.checks.run_data import FEWEST, Evidence

NO_LOSS = 1e-6  # below: advantages that cancel, and rounding
NOTHING = 1e-12  # a gradient's norm below which nothing arrives at the weights
TENFOLD = 10.0  # times the norm of the run's beginning: no task changes it that much
FAR = 0.5  # nats an action: 50 nats on 100 tokens; useful policies stay below a tenth
STILL = 1.5  # times its value half-way: it does not level off
FAST = 0.1  # of the weights' size, in one update: what was learned before is overwritten in ten
TOO_FAST = 0.3

ZERO_LOSS = Advice(
    "loss is zero",
    "note",
    (
        "Normal on policy: with one update a step every ratio is 1, and the advantages of a group"
        " add up to 0. Their gradient does not.",
    ),
    ("Watch the reward and the held-out tasks, not the loss.",),
)
NO_GRADIENT = Advice(
    "no gradient",
    "error",
    (
        "The method's credit gives every rollout 0.",
        "Every ratio is clipped.",
        "What is trained has no part in the answer: adapters on the wrong layers.",
    ),
    ("Look at `advantage/zero` and at `clip/`.", "Train without adapters once."),
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
TOO_HIGH = Advice(
    "learning rate too high",
    "warning",
    ("`lr` is too high for this model: adapters bear some 1e-4, whole models some 1e-6.",),
    ("A tenth of the `lr`, and again until `update/size` is below 0.01.", "A warm-up."),
)
NONFINITE = Advice(
    "gradient not finite",
    "error",
    (
        "A ratio overflows: the policy moved too far within a step.",
        "A dtype with too small a range.",
    ),
    ("A lower `lr`, or fewer updates a step.", 'dtype="float32" for a few steps.'),
)
EXPLODES = Advice(
    "gradient explodes",
    "warning",
    ("`lr` is too high.", "The policy has become so sure that rare answers weigh much."),
    ("A third of the `lr`.", "A smaller `max_norm`, or a KL to the reference."),
)
KL_GROWS = Advice(
    "KL grows without bound",
    "warning",
    ("The KL's weight is too small to hold.", "The reward pays for strange answers."),
    ("A larger weight of the KL, or a lower `lr`.", "Read the best: `grupo rollouts --best 10`."),
)


def zero_loss(run: Evidence) -> Iterator[Finding]:
    """The loss is 0 and all is well."""
    losses, norms = run("loss"), run("gradient/norm")
    long = len(losses.values) >= FEWEST
    if long and max(map(abs, losses.values)) <= NO_LOSS and norms.mean > NOTHING:
        yield ZERO_LOSS(
            f"The loss is 0 at all {len(losses.values)} steps while the gradient's norm is"
            f" {norms.mean:.2g}: the policy learns."
        )


def no_gradient(run: Evidence) -> Iterator[Finding]:
    """Nothing reaches the weights although there is something to learn from."""
    norms, signal = run.end("gradient/norm"), run.end("groups/signal")
    if len(norms.values) >= FEWEST and signal.mean > 0 and max(norms.values) <= NOTHING:
        yield _dead(run, NO_GRADIENT)(
            f"The gradient's norm is 0 at {span(norms.steps)}, while rewards differ in"
            f" {signal.mean:.0%} of the groups.",
            at=of_steps(norms.steps),
        )


def unmoved(run: Evidence) -> Iterator[Finding]:
    """There is a gradient, and the weights stay as they are."""
    changed, norms = run.end("update/changed"), run.end("gradient/norm")
    still = len(changed.values) >= FEWEST and not any(changed.values)
    if still and norms.mean > NOTHING:
        yield _dead(run, UNMOVED)(
            f"No weight that was looked at changed at {span(changed.steps)}, while the gradient's"
            f" norm was {norms.mean:.2g} and `lr` {run.end('lr').mean:.2g}.",
            at=of_steps(changed.steps),
        )


def too_fast(run: Evidence) -> Iterator[Finding]:
    """An update changes so much of the weights that nothing can be kept."""
    size, entropy = run("update/size"), run("entropy")
    if len(size.values) >= FEWEST and size.mean > FAST:
        worst = sorted(size, key=lambda pair: -pair[1])
        yield replace(TOO_HIGH, severity="error" if size.mean > TOO_FAST else "warning")(
            f"An update moves the weights by {size.mean:.0%} of their size on average, at `lr`"
            f" {run('lr').mean:.2g}. Entropy went from {entropy.first(1).mean:.3g} to"
            f" {entropy.last(1).mean:.3g} nats.",
            at=of_steps([step for step, _ in worst]),
        )


def nonfinite_gradient(run: Evidence) -> Iterator[Finding]:
    """Gradients with NaN or infinity, whose updates were left out."""
    bad = [step for step, share in run("gradient/nonfinite") if share > 0]
    if bad:
        yield NONFINITE(
            f"The gradient was NaN or infinite at {span(bad)}; those updates were left out.",
            at=of_steps(bad),
        )


def exploding_gradient(run: Evidence) -> Iterator[Finding]:
    """The gradient's norm grew out of all proportion."""
    begin, end = run.begin("gradient/norm"), run.end("gradient/norm")
    long = len(run("gradient/norm").values) >= 2 * run.width
    if long and end.mean > TENFOLD * begin.mean > 0:
        yield EXPLODES(
            f"The gradient's norm was {begin.mean:.2g} at {span(begin.steps)} and is"
            f" {end.mean:.2g} at {span(end.steps)}.",
            at=of_steps(end.steps),
        )


def growing_kl(run: Evidence) -> Iterator[Finding]:
    """The policy leaves its reference and does not stop."""
    for name in run.names("kl/"):
        half, end = run(name).first(len(run(name).values) // 2).last(run.width), run.end(name)
        if end.mean > FAR and end.mean > STILL * half.mean:
            seen = f"{half.mean:.2g} nats an action half-way, {end.mean:.2g} at {span(end.steps)}."
            yield KL_GROWS(seen, name, of_steps(end.steps))


def _dead(run: Evidence, otherwise: Advice) -> Advice:
    """What is to be said where adapters are all that is trained."""
    policy = run.recipe.get("policy", {})
    return DEAD_ADAPTERS if isinstance(policy, dict) and policy.get("lora") else otherwise
