"""Is the policy updated as it should be?"""

from collections.abc import Iterator
from dataclasses import replace

from grupo.report.checks import advice
from grupo.report.checks.evidence import Evidence
from grupo.report.checks.finding import Finding, span
from grupo.report.checks.signal import FEWEST

NO_LOSS = 1e-6  # below: advantages that cancel, and rounding
NO_GRADIENT = 1e-12  # below: nothing arrives at the weights
# Of log-probabilities, in nats. Float32 agrees to 1e-6, bfloat16 with one kernel to some 1e-2.
OFF = 0.01
FAR_OFF = 0.05
OFF_ONCE = 2.0  # of a single action: its ratio is off by e^2, one clip away from lost
EXPLODES = 10.0  # times the norm of the run's beginning: no task changes it that much
KL_MUCH = 0.5  # nats an action: 50 nats on 100 tokens; useful policies stay below a tenth
KL_GROWS = 1.5  # times its value half-way: it does not level off


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
        yield advice.NO_GRADIENT(
            f"The gradient's norm is 0 at {span(norms.steps)}, while rewards differ in"
            f" {signal.mean:.0%} of the groups."
        )


def nonfinite_gradient(run: Evidence) -> Iterator[Finding]:
    """Gradients with NaN or infinity, whose updates were left out."""
    series = run("gradient/nonfinite")
    bad = [s for s, v in zip(series.steps, series.values, strict=True) if v > 0]
    if bad:
        yield advice.NONFINITE(
            f"The gradient was NaN or infinite at {span(bad)}; those updates were left out."
        )


def exploding_gradient(run: Evidence) -> Iterator[Finding]:
    """The gradient's norm grew out of all proportion."""
    begin, end = run.begin("gradient/norm"), run.end("gradient/norm")
    long = len(run("gradient/norm").values) >= 2 * run.width
    if long and end.mean > EXPLODES * begin.mean > 0:
        yield advice.EXPLODES(
            f"The gradient's norm was {begin.mean:.2g} at {span(begin.steps)} and is"
            f" {end.mean:.2g} at {span(end.steps)}."
        )


def mismatch(run: Evidence) -> Iterator[Finding]:
    """The trainer disagrees with the sampler about how likely the answers were."""
    mean = run("mismatch/mean")
    high, most = (max(run(f"mismatch/{n}").values, default=0.0) for n in ("mean", "max"))
    if mean.mean > OFF or high > FAR_OFF or most > OFF_ONCE:
        yield replace(advice.MISMATCH, severity="error" if high > FAR_OFF else "warning")(
            f"Before any update of a step, log-probabilities differ by {mean.mean:.2g} on average,"
            f" by {high:.2g} at the worst step and by {most:.2g} at the worst action. Expected:"
            f" below {OFF} on average, and below {OFF_ONCE} everywhere."
        )


def growing_kl(run: Evidence) -> Iterator[Finding]:
    """The policy leaves its reference and does not stop."""
    for name in run.names("kl/"):
        half, end = run(name).first(len(run(name).values) // 2).last(run.width), run.end(name)
        if end.mean > KL_MUCH and end.mean > KL_GROWS * half.mean:
            seen = f"{half.mean:.2g} nats an action half-way, {end.mean:.2g} at {span(end.steps)}."
            yield advice.KL_GROWS(seen, name)
