"""Checks of the routers of a mixture of experts: experts that no token reaches."""

from collections.abc import Iterator

from grupo.report.checks.finding import Finding, FindingTemplate, format_steps, step_locations
from grupo.report.checks.run_data import RunData

MAX_DEAD_FRAC = 0.1
# tokens of a step, below which experts may have no token by chance: with 8 of 256 experts chosen at
# random, 1,000 tokens leave each out with probability 2e-14
MIN_TOKENS = 1_000
DEAD_EXPERTS = FindingTemplate(
    "dead experts",
    "warning",
    (
        "The routers have collapsed: training pulls all tokens to a few experts.",
        "The tasks are alike, and the model keeps other experts for other texts.",
    ),
    (
        "Compare `router/dead_experts` of the first step: experts that were dead before training"
        " belong to other texts.",
        "Add the load-balancing loss: `--policy.router_aux_loss 0.001`.",
        "Lower the learning rate.",
    ),
)


def dead_experts(run: RunData) -> Iterator[Finding]:
    """No token of the recent steps is routed to many of the experts."""
    dead = run.last_window("router/dead_experts")
    tokens = run.last_window("tokens/backpropagated")
    if dead.values and dead.mean > MAX_DEAD_FRAC and tokens.mean >= MIN_TOKENS:
        first = run("router/dead_experts").values[0]
        yield DEAD_EXPERTS(
            f"At {format_steps(dead.steps)} no token of an update was routed to {dead.mean:.1%} of"
            f" the experts; {first:.1%} at the first step. Expected: at most {MAX_DEAD_FRAC:.0%}.",
            locations=step_locations(dead.steps),
        )
