"""Do the weights move, and as far as they should?"""

from collections.abc import Iterator
from dataclasses import replace

from grupo.report.checks.finding import Finding, FindingTemplate, format_steps, step_locations
from grupo.report.checks.run_data import MIN_STEPS, RunData

MAX_ZERO_LOSS = 1e-6  # below: advantages that cancel, and rounding
MIN_GRAD_NORM = 1e-12  # a gradient's norm below which nothing arrives at the weights
GRAD_NORM_GROWTH = 10.0  # times the norm of the run's beginning: no task changes it that much
MAX_KL = 0.5  # nats an action: 50 nats on 100 tokens; useful policies stay below a tenth
KL_GROWTH = 1.5  # times its value half-way: it does not level off
LARGE_UPDATE = (
    0.1  # of the weights' size, in one update: what was learned before is overwritten in ten
)
TOO_LARGE_UPDATE = 0.3

ZERO_LOSS = FindingTemplate(
    "loss is zero",
    "note",
    (
        "Normal on policy: with one update a step every ratio is 1, and the advantages of a group"
        " add up to 0. Their gradient does not.",
    ),
    ("Watch the reward and the held-out tasks, not the loss.",),
)
NO_GRADIENT = FindingTemplate(
    "no gradient",
    "error",
    (
        "The method's credit gives every rollout 0.",
        "Every ratio is clipped.",
        "What is trained has no part in the answer: adapters on the wrong layers.",
    ),
    ("Look at `advantage/zero_frac` and at `clip/`.", "Train without adapters once."),
)
WEIGHTS_UNCHANGED = FindingTemplate(
    "weights do not change",
    "error",
    (
        "`lr` is 0, or its schedule has come to 0.",
        "The optimizer has other weights than the policy.",
        "The weights are kept in a dtype too coarse for so small an update.",
    ),
    ("Look at `lr` in the metrics.", 'dtype="float32" once.'),
)
DEAD_ADAPTERS = FindingTemplate(
    "dead adapters",
    "error",
    (
        "The adapters have no part in the answer: they lie on layers that it does not pass.",
        "Both halves of an adapter are 0, so that neither has a gradient.",
        "They are frozen, or the gradient is cut off before them (checkpointing).",
    ),
    ("`--policy.lora.targets all-linear`.", "`--policy.lora None` once: weights must move then."),
)
LEARNING_RATE_TOO_HIGH = FindingTemplate(
    "learning rate too high",
    "warning",
    ("`lr` is too high for this model: adapters bear some 1e-4, whole models some 1e-6.",),
    ("A tenth of the `lr`, and again until `update/relative_norm` is below 0.01.", "A warm-up."),
)
NONFINITE_GRADIENT = FindingTemplate(
    "gradient not finite",
    "error",
    (
        "A ratio overflows: the policy moved too far within a step.",
        "A dtype with too small a range.",
    ),
    ("A lower `lr`, or fewer updates a step.", 'dtype="float32" for a few steps.'),
)
EXPLODING_GRADIENT = FindingTemplate(
    "gradient explodes",
    "warning",
    ("`lr` is too high.", "The policy has become so sure that rare answers weigh much."),
    ("A third of the `lr`.", "A smaller `max_norm`, or a KL to the reference."),
)
GROWING_KL = FindingTemplate(
    "KL grows without bound",
    "warning",
    ("The KL's weight is too small to hold.", "The reward pays for strange answers."),
    ("A larger weight of the KL, or a lower `lr`.", "Read the best: `grupo rollouts --best 10`."),
)


def zero_loss(run: RunData) -> Iterator[Finding]:
    """The loss is 0 and all is well."""
    losses, norms = run("loss"), run("grad_norm")
    long = len(losses.values) >= MIN_STEPS
    if long and max(map(abs, losses.values)) <= MAX_ZERO_LOSS and norms.mean > MIN_GRAD_NORM:
        yield ZERO_LOSS(
            f"The loss is 0 at all {len(losses.values)} steps while the gradient's norm is"
            f" {norms.mean:.2g}: the policy learns."
        )


def no_gradient(run: RunData) -> Iterator[Finding]:
    """Nothing reaches the weights although there is something to learn from."""
    norms, signal = run.last_window("grad_norm"), run.last_window("groups/nonzero_std_frac")
    if len(norms.values) >= MIN_STEPS and signal.mean > 0 and max(norms.values) <= MIN_GRAD_NORM:
        yield _dead_adapters_or(run, NO_GRADIENT)(
            f"The gradient's norm is 0 at {format_steps(norms.steps)}, while rewards differ in"
            f" {signal.mean:.0%} of the groups.",
            locations=step_locations(norms.steps),
        )


def weights_unchanged(run: RunData) -> Iterator[Finding]:
    """There is a gradient, and the weights stay as they are."""
    changed, norms = run.last_window("update/changed_frac"), run.last_window("grad_norm")
    still = len(changed.values) >= MIN_STEPS and not any(changed.values)
    if still and norms.mean > MIN_GRAD_NORM:
        yield _dead_adapters_or(run, WEIGHTS_UNCHANGED)(
            f"No weight that was looked at changed at {format_steps(changed.steps)}, while the gradient's"
            f" norm was {norms.mean:.2g} and `lr` {run.last_window('lr').mean:.2g}.",
            locations=step_locations(changed.steps),
        )


def update_too_large(run: RunData) -> Iterator[Finding]:
    """An update changes so much of the weights that nothing can be kept."""
    size, entropy = run("update/relative_norm"), run("entropy")
    if len(size.values) >= MIN_STEPS and size.mean > LARGE_UPDATE:
        worst = sorted(size, key=lambda pair: -pair[1])
        yield replace(
            LEARNING_RATE_TOO_HIGH, severity="error" if size.mean > TOO_LARGE_UPDATE else "warning"
        )(
            f"An update moves the weights by {size.mean:.0%} of their size on average, at `lr`"
            f" {run('lr').mean:.2g}. Entropy went from {entropy.first(1).mean:.3g} to"
            f" {entropy.last(1).mean:.3g} nats.",
            locations=step_locations([step for step, _ in worst]),
        )


def nonfinite_gradient(run: RunData) -> Iterator[Finding]:
    """Gradients with NaN or infinity, whose updates were left out."""
    bad = [step for step, share in run("grad_nonfinite") if share > 0]
    if bad:
        yield NONFINITE_GRADIENT(
            f"The gradient was NaN or infinite at {format_steps(bad)}; those updates were left out.",
            locations=step_locations(bad),
        )


def exploding_gradient(run: RunData) -> Iterator[Finding]:
    """The gradient's norm grew out of all proportion."""
    begin, end = run.first_window("grad_norm"), run.last_window("grad_norm")
    long = len(run("grad_norm").values) >= 2 * run.window
    if long and end.mean > GRAD_NORM_GROWTH * begin.mean > 0:
        yield EXPLODING_GRADIENT(
            f"The gradient's norm was {begin.mean:.2g} at {format_steps(begin.steps)} and is"
            f" {end.mean:.2g} at {format_steps(end.steps)}.",
            locations=step_locations(end.steps),
        )


def growing_kl(run: RunData) -> Iterator[Finding]:
    """The policy leaves its reference and does not stop."""
    for name in run.metric_names("kl/"):
        half, end = (
            run(name).first(len(run(name).values) // 2).last(run.window),
            run.last_window(name),
        )
        if end.mean > MAX_KL and end.mean > KL_GROWTH * half.mean:
            seen = f"{half.mean:.2g} nats an action half-way, {end.mean:.2g} at {format_steps(end.steps)}."
            yield GROWING_KL(seen, name, step_locations(end.steps))


def _dead_adapters_or(run: RunData, otherwise: FindingTemplate) -> FindingTemplate:
    """What is to be said where adapters are all that is trained."""
    policy = run.recipe.get("policy", {})
    return DEAD_ADAPTERS if isinstance(policy, dict) and policy.get("lora") else otherwise
