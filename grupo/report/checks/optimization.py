"""Checks of the optimizer: gradient norms, update sizes, KL to the reference."""

from collections.abc import Iterator
from dataclasses import replace

from grupo.report.checks.finding import Finding, FindingTemplate, format_steps, step_locations
from grupo.report.checks.run_data import MIN_STEPS, RunData

MAX_ZERO_LOSS = 1e-6  # below: advantages that cancel, up to rounding
MIN_GRAD_NORM = 1e-12  # below: no gradient reaches the weights
GRAD_NORM_GROWTH = 10.0  # times the norm in the first window: harder tasks change it by less
MAX_KL = 0.5  # nats per action: 50 nats for 100 tokens; useful policies stay below a tenth of it
KL_GROWTH = 1.5  # times the value half-way through the run: it does not level off
LARGE_KL = 1.0  # nats per action, whether it grows or not: a mean probability ratio of e
LARGE_UPDATE = 0.1  # of the weights' norm, in one update: ten updates overwrite the weights
TOO_LARGE_UPDATE = 0.3

ZERO_LOSS = FindingTemplate(
    "zero loss",
    "note",
    (
        "Normal on policy: with one update per step every ratio is 1, and the advantages of a group"
        " add up to 0. Their gradient does not.",
    ),
    ("Watch the reward and the held-out scores instead of the loss.",),
)
NO_GRADIENT = FindingTemplate(
    "no gradient",
    "error",
    (
        "The advantage estimator returns 0 for every rollout.",
        "Every ratio is clipped.",
        "The trained parameters do not affect the output: adapters on the wrong layers.",
    ),
    ("Look at `advantage/zero_frac` and at `clip_frac/`.", "Train once without adapters."),
)
WEIGHTS_UNCHANGED = FindingTemplate(
    "weights unchanged",
    "error",
    (
        "`learning_rate` is 0, or its schedule has reached 0.",
        "The optimizer holds other parameters than the policy.",
        "The dtype of the weights is too coarse for such small updates.",
    ),
    ("Look at `lr` in the metrics.", 'Try dtype="float32" once.'),
)
DEAD_ADAPTERS = FindingTemplate(
    "dead adapters",
    "error",
    (
        "The adapters do not affect the output: they are on layers that are not used.",
        "Both matrices of an adapter are 0, so neither has a gradient.",
        "They are frozen, or the gradient does not reach them (gradient checkpointing).",
    ),
    (
        "Use `--policy.lora.targets all-linear`.",
        "Train once with `--policy.lora None`: then the weights must change.",
    ),
)
LEARNING_RATE_TOO_HIGH = FindingTemplate(
    "learning rate too high",
    "warning",
    (
        "`learning_rate` is too high for this model: typical values are 1e-4 for adapters and 1e-6"
        " for full fine-tuning.",
    ),
    (
        "Divide `learning_rate` by 10 until `update/relative_norm` is below 0.01.",
        "Use a warm-up.",
    ),
)
NONFINITE_GRADIENT = FindingTemplate(
    "non-finite gradient",
    "error",
    (
        "A ratio overflows: the policy changed too much within a step.",
        "An advantage is NaN or infinite.",
        "The range of the dtype is too small.",
    ),
    (
        "Use a lower `learning_rate`, or fewer updates per step.",
        'Try dtype="float32" for a few steps.',
    ),
)
EXPLODING_GRADIENT = FindingTemplate(
    "exploding gradient",
    "warning",
    (
        "`learning_rate` is too high.",
        "The policy is nearly deterministic, so rare tokens have large gradients.",
    ),
    (
        "Divide `learning_rate` by 3.",
        "Use a smaller `max_grad_norm`, or a KL penalty to the reference policy.",
    ),
)
GROWING_KL = FindingTemplate(
    "growing KL",
    "warning",
    ("`kl_coef` is too small.", "The reward favours unusual answers."),
    (
        "Use a larger `kl_coef`, or a lower `learning_rate`.",
        "Read the rollouts with the highest rewards: `grupo rollouts RUN --best 10`.",
    ),
)
FAR_FROM_REFERENCE = FindingTemplate(
    "large KL", "warning", GROWING_KL.causes, GROWING_KL.suggestions
)


def zero_loss(run: RunData) -> Iterator[Finding]:
    """The loss is 0 at every step while the gradient is not."""
    losses = run("loss")
    norms = run("grad_norm")
    is_long_enough = len(losses.values) >= MIN_STEPS
    if (
        is_long_enough
        and max(map(abs, losses.values)) <= MAX_ZERO_LOSS
        and norms.mean > MIN_GRAD_NORM
    ):
        changed = run("update/changed_frac").mean
        consequence = f", and {changed:.0%} of the sampled weights changed" if changed > 0 else ""
        yield ZERO_LOSS(
            f"The loss is 0 at all {len(losses.values)} steps while the gradient's norm is"
            f" {norms.mean:.2g}{consequence}."
        )


def no_gradient(run: RunData) -> Iterator[Finding]:
    """The gradient is 0 although rewards differ."""
    norms = run.last_window("grad_norm")
    nonzero_std = run.last_window("groups/nonzero_std_frac")
    is_zero = len(norms.values) >= MIN_STEPS and max(norms.values) <= MIN_GRAD_NORM
    if is_zero and nonzero_std.mean > 0:
        yield _dead_adapters_or(run, NO_GRADIENT)(
            f"The gradient's norm is 0 at {format_steps(norms.steps)}, while rewards differ in"
            f" {nonzero_std.mean:.0%} of the groups.",
            locations=step_locations(norms.steps),
        )


def weights_unchanged(run: RunData) -> Iterator[Finding]:
    """The gradient is not 0, and the weights do not change."""
    changed = run.last_window("update/changed_frac")
    norms = run.last_window("grad_norm")
    is_unchanged = len(changed.values) >= MIN_STEPS and not any(changed.values)
    if is_unchanged and norms.mean > MIN_GRAD_NORM:
        yield _dead_adapters_or(run, WEIGHTS_UNCHANGED)(
            f"None of the sampled weights changed at {format_steps(changed.steps)}, while the"
            f" gradient's norm was {norms.mean:.2g} and the learning rate"
            f" {run.last_window('lr').mean:.2g}.",
            locations=step_locations(changed.steps),
        )


def update_too_large(run: RunData) -> Iterator[Finding]:
    """Updates are large in relation to the weights."""
    size = run("update/relative_norm")
    entropy = run("policy/entropy")
    if len(size.values) >= MIN_STEPS and size.mean > LARGE_UPDATE:
        worst = sorted(size, key=lambda pair: -pair[1])
        severity = "error" if size.mean > TOO_LARGE_UPDATE else "warning"
        yield replace(LEARNING_RATE_TOO_HIGH, severity=severity)(
            f"An update changes the weights by {size.mean:.0%} of their norm on average, at a"
            f" learning rate of {run('lr').mean:.2g}. Entropy went from"
            f" {entropy.first(1).mean:.3g} to {entropy.last(1).mean:.3g} nats.",
            locations=step_locations([step for step, _ in worst]),
        )


def nonfinite_gradient(run: RunData) -> Iterator[Finding]:
    """Gradients with NaN or infinity, whose updates were skipped."""
    bad = [step for step, share in run("grad_nonfinite") if share > 0]
    if bad:
        yield NONFINITE_GRADIENT(
            f"The gradient was NaN or infinite at {format_steps(bad)}; these updates were skipped.",
            locations=step_locations(bad),
        )


def exploding_gradient(run: RunData) -> Iterator[Finding]:
    """The gradient's norm grew by more than `GRAD_NORM_GROWTH`."""
    begin = run.first_window("grad_norm")
    end = run.last_window("grad_norm")
    is_long_enough = len(run("grad_norm").values) >= 2 * run.window
    if is_long_enough and end.mean > GRAD_NORM_GROWTH * begin.mean > 0:
        yield EXPLODING_GRADIENT(
            f"The gradient's norm was {begin.mean:.2g} at {format_steps(begin.steps)} and is"
            f" {end.mean:.2g} at {format_steps(end.steps)}.",
            locations=step_locations(end.steps),
        )


def growing_kl(run: RunData) -> Iterator[Finding]:
    """The KL to another policy grows and does not level off, or is large."""
    for name in run.metric_names("policy/kl_"):
        series = run(name)
        end = run.last_window(name)
        half = series.first(len(series.values) // 2).last(run.window)
        details = (
            f"{half.mean:.2g} nats per action half-way, {end.mean:.2g} at"
            f" {format_steps(end.steps)}."
        )
        if end.mean > MAX_KL and end.mean > KL_GROWTH * half.mean:
            yield GROWING_KL(details, name, step_locations(end.steps))
        elif end.mean > LARGE_KL:
            yield FAR_FROM_REFERENCE(details, name, step_locations(end.steps))


def _dead_adapters_or(run: RunData, otherwise: FindingTemplate) -> FindingTemplate:
    """`DEAD_ADAPTERS` if the run trains adapters only, otherwise the given template."""
    policy = run.recipe.get("policy", {})
    return DEAD_ADAPTERS if isinstance(policy, dict) and policy.get("lora") else otherwise
