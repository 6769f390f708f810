"""The slots of a method that never act under its own update plan."""

from functools import cache

from grupo.core.component import to_code
from grupo.method import Method
from grupo.testing.grpo_gradient import TWO_UPDATES, gradient_pairs, grpo_counterpart

SLOTS = ("advantage", "loss", "aggregation")  # those that enter the gradient of a given batch
RELATIVE = 1e-9


def inert_slot_sentence(method: Method) -> str:
    """A sentence about the slots that never act; "" if all act.

    >>> from grupo.algo.losses import Clip
    >>> inert_slot_sentence(Method(loss=Clip(0.2, 0.28)))
    'With SingleUpdate() the loss never acts: GRPO\\'s gives the same gradient, because every ratio is 1'
    """
    slots = inert_slots(method)
    if not slots:
        return ""
    others = inert_slots(method.replace(updates=TWO_UPDATES))
    reason = ", because every ratio is 1" * (not set(slots) & set(others))
    acts = "acts" if len(slots) == 1 else "act"
    names = " and ".join(f"the {slot}" for slot in slots)
    return (
        f"With {to_code(method.updates)} {names} never {acts}: GRPO's gives the same gradient"
        f"{reason}"
    )


@cache
def inert_slots(method: Method) -> tuple[str, ...]:
    """The slots without which every update of a step has the same gradient, up to one factor.

    A slot that differs from GRPO's is replaced by GRPO's, with the method's KL divergence. The
    policy equals the sampler's in the first update and has moved before each later one.
    """
    grpo = grpo_counterpart(method)
    return tuple(
        slot
        for slot in SLOTS
        if getattr(method, slot) != getattr(grpo, slot)
        and _is_multiple(method, method.replace(**{slot: getattr(grpo, slot)}))
    )


def _is_multiple(method: Method, other: Method) -> bool:
    """True if all gradients of the methods differ by one positive factor."""
    factor = 0.0
    for a, b in gradient_pairs(method, other):
        scale = b.abs().max()
        if not factor and scale > 0:
            factor = (a.flatten()[b.abs().argmax()] / b.flatten()[b.abs().argmax()]).item()
            if factor <= 0:
                return False
        if (a - factor * b).abs().max() > RELATIVE * max(1.0, factor) * scale.clamp(min=1.0):
            return False
    return factor > 0
