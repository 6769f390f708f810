"""The company a policy keeps: those whose signals its method reads, by name."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from grupo.errors import Refused
from grupo.piece import piece
from grupo.policies.causal_lm import CausalLM, CausalPolicy
from grupo.policies.others import Speaker, Tempered, Viewed, With, Without
from grupo.references import Follow
from grupo.rollout import Group, Observation, Rollout
from grupo.signals import split, tempered

View = Callable[[Group, Rollout], Observation | None]  # what is read in place of the prompt


@piece
class Other:
    """Somebody whose signals a method may read: `logp@name`.

    `who` is a model of its own, or "policy" or "ref"; `view` says what is read before the same
    actions in place of the task's prompt, None: the prompt itself.
    """

    name: str
    who: CausalLM | str = "policy"
    view: View | None = None


@dataclass
class Company:
    """Speakers by name, and the reference where it follows the policy."""

    speakers: dict[str, Speaker]
    views: Mapping[str, View] = field(default_factory=dict)
    follow: Follow = Follow()
    following: dict[str, Tensor] = field(default_factory=dict)  # the reference's weights

    @torch.no_grad()
    def after(self, step: int, policy: CausalPolicy) -> None:
        """Let the reference follow, where it is time to, now that so many steps are done."""
        if self.following and step % self.follow.every == 0:
            for name, theirs in policy.weights().items():
                self.following[name].lerp_(theirs, self.follow.rate)

    def seen_otherwise(self, policy: CausalPolicy, groups: Sequence[Group]) -> dict[str, object]:
        """The inputs of every view of the groups' rollouts."""
        return {
            f"view/{name}": policy.encode(
                [_read(policy, view(g, r), r) for g in groups for r in g.rollouts]
            )
            for name, view in self.views.items()
        }

    @torch.no_grad()
    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """Give the reference back the weights that were saved."""
        for name, x in self.following.items():
            x.copy_(weights[name])


def company(
    policy: CausalPolicy, needs: Collection[str], follow: Follow, others: Sequence[Other]
) -> Company:
    """Everybody whom `needs` names, loaded; the policy is told whom it can be compared with."""
    asked = {who for _, who in map(split, needs) if who and who != "sampler"}
    wanted = [other for other in others if other.name in asked]
    made = Company({}, {o.name: o.view for o in wanted if o.view}, follow)
    base: dict[str, Speaker] = {"policy": policy}
    if "ref" in asked or any(other.who == "ref" for other in wanted):
        base["ref"] = made.speakers["ref"] = _reference(policy, made)
    for other in wanted:
        speaker = base[other.who] if isinstance(other.who, str) else _teacher(other, policy)
        made.speakers[other.name] = Viewed(speaker, other.name) if other.view else speaker
    for who in sorted(asked):
        if factor := tempered(who):
            made.speakers[who] = Tempered(policy, factor)
    policy.others = made.speakers
    return made


def _teacher(other: Other, policy: CausalPolicy) -> CausalPolicy:
    assert isinstance(other.who, CausalLM)
    teacher = other.who.build()
    mine, theirs = (one.language.tokenizer.get_vocab() for one in (policy, teacher))
    if mine != theirs:
        raise Refused(
            f"others: {other.name!r} has {len(theirs)} tokens, and they are not the policy's"
            f" {len(mine)}. Allowed: a model with the vocabulary of {policy.spec.model!r}."
        )
    teacher.module.requires_grad_(False)
    return teacher


def _reference(policy: CausalPolicy, made: Company) -> Speaker:
    if not policy.spec.lora:
        copy = policy.copy()
        made.following = dict(copy.module.named_parameters()) if made.follow.rate else {}
        return copy
    if not made.follow.rate:
        return Without(policy)
    made.following = {name: x.clone() for name, x in policy.weights().items()}
    return With(policy, made.following)


def _read(policy: CausalPolicy, seen: Observation | None, rollout: Rollout) -> Rollout:
    """The rollout as if `seen` had been its prompt."""
    if seen is None or not rollout.turns:
        return rollout
    (_, first), *rest = rollout.turns
    now = replace(first, seen=policy.read(Rollout(), seen))
    return replace(rollout, turns=((seen, now), *rest))
