"""Slots of a method that change its update on no batch of the comparison, with the reasons.

A slot acts if GRPO's component in its place changes the update. A minibatch of the comparison may
hold a single group, so that a mean over groups equals a mean over answers: such slots are tried
with one minibatch, on groups of unequal sizes.
"""

from dataclasses import replace

from grupo.algo.minibatches import SingleUpdate
from grupo.core.schedules import resolve_schedules
from grupo.method import Method
from tests.reference.assembled.planted_errors import (
    CANNOT_MATTER,
    SEEDS,
    PlantedError,
    changes,
    fits,
    outcome,
)
from tests.reference.assembled.references import compared_method
from tests.reference.assembled_numpy.update import REFERENCES

# of an update; tests/reference/rollouts and tests/reference/steps compare the others
SLOTS = ("filter", "advantage", "loss", "aggregation", "updates")
UNEQUAL_GROUPS = ((3, 6, 5), (4, 8))

NO_ADVANTAGE = "the loss reads no advantages"
ONE_ROW = "a rollout of the comparison is one row; the two means differ where it has several"
EARLIER_STEPS = "the filter replays rollouts of earlier steps, and the comparison is of one step"
REASONS = {
    "advantage": {
        NO_ADVANTAGE: (
            "bco bradley_terry cdpo cgpo_codpo disco dpo drpo gepo gkd groco hinge implicit_prm"
            " inpo ipo ln_dpo modpo mpo nca nft omegaprm op_gfn orpo ovm pacs prm_lessons rft"
            " robust_dpo sft simpo sppo srpo_self_improving"
        ),
        "beside GRPO's advantage it counts rollouts for the sampler of later steps": "arrol",
    },
    "aggregation": {ONE_ROW: "delethink implicit_prm loop mars_selfplay opmd pacs"},
    "filter": {EARLIER_STEPS: "arpo_gui_replay r3"},
    "loss": {
        "it adds a metric to GRPO's loss; the KL divergence is in the reward": "kl_in_reward",
        "its entropy bonus is 0 until an entropy below the target has been measured": "skywork_or1",
    },
}


def stated_reasons() -> dict[tuple[str, str], str]:
    """The reason of each slot that does not act, by method and slot."""
    return {
        (name, slot): reason
        for slot, reasons in REASONS.items()
        for reason, names in reasons.items()
        for name in names.split()
    }


def changed_slots_of(name: str) -> list[str]:
    """The slots of an update in which a method differs from GRPO."""
    method = compared_method(name)
    return [slot for slot in SLOTS if getattr(method, slot) != getattr(Method(), slot)]


def acts(name: str, slot: str) -> bool:
    """True if GRPO's component in the slot changes the update of the method on some batch."""
    options = REFERENCES[name].options
    method = resolve_schedules(compared_method(name), options.progress)
    grpo = PlantedError(lambda m: m.replace(**{slot: getattr(Method(), slot)}))
    if outcome(method, grpo, options) != CANNOT_MATTER:
        return True
    if slot == "updates":
        return False
    undivided = method.replace(updates=SingleUpdate())
    unequal = (replace(options, groups=x, seed=seed) for x in UNEQUAL_GROUPS for seed in SEEDS)
    return any(fits(undivided, case) and changes(undivided, grpo, case) for case in unequal)


def inert_slots() -> set[tuple[str, str]]:
    """The slots that do not act, by method and slot."""
    return {
        (name, slot)
        for name in sorted(REFERENCES)
        for slot in changed_slots_of(name)
        if not acts(name, slot)
    }
