"""Who else can say how likely a language model's actions are: a reference, a teacher, itself."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from grupo.errors import Refused
from grupo.policies.company import Company, Other, Reread, View
from grupo.policies.others import Speaker, Tempered, Viewed, With, Without
from grupo.policies.speaking import Language, reread
from grupo.references import Follow
from grupo.rollout import Group, Rollout
from grupo.signals import split, tempered

if TYPE_CHECKING:
    from grupo.policies.causal_lm import CausalPolicy


def accompany(
    policy: "CausalPolicy", needs: Collection[str], follow: Follow, others: Sequence[Other]
) -> tuple[Company, Mapping[str, Speaker]]:
    """Everybody whom `needs` names, loaded, and whom the policy can be compared with."""
    asked = {who for _, who in map(split, needs) if who and who != "sampler"}
    wanted = [other for other in others if other.name in asked]
    views = {o.name: _reading(policy.language, o.view) for o in wanted if o.view}
    speakers: dict[str, Speaker] = {}
    base: dict[str, Speaker] = {"policy": policy}
    following: dict[str, Tensor] = {}
    if "ref" in asked or any(other.who == "ref" for other in wanted):
        base["ref"], following = _reference(policy, follow)
        speakers["ref"] = base["ref"]
    for other in wanted:
        speaker = base[other.who] if isinstance(other.who, str) else _teacher(other, policy)
        speakers[other.name] = Viewed(speaker, other.name) if other.view else speaker
    for who in sorted(asked):
        if factor := tempered(who):
            speakers[who] = Tempered(policy, factor)
    return Company(speakers, views, follow, following), speakers


def _teacher(other: Other, policy: "CausalPolicy") -> Speaker:
    teacher: Any = other.who.build() if not isinstance(other.who, str) else None
    language = getattr(teacher, "language", None)
    theirs = language.tokenizer.get_vocab() if language else {}
    mine = policy.language.tokenizer.get_vocab()
    if mine != theirs:
        raise Refused(
            f"others: {other.name!r} has {len(theirs)} tokens, and they are not the policy's"
            f" {len(mine)}. Allowed: a model with the vocabulary of {policy.spec.model!r}."
        )
    teacher.module.requires_grad_(False)
    return teacher


def _reference(policy: "CausalPolicy", follow: Follow) -> tuple[Speaker, dict[str, Tensor]]:
    """The reference, and its weights if they follow the policy's."""
    if not policy.spec.lora:
        copy = policy.copy()
        return copy, dict(copy.module.named_parameters()) if follow.rate else {}
    if not follow.rate:
        return Without(policy), {}
    following = {name: x.clone() for name, x in policy.weights().items()}
    return With(policy, following), following


def _reading(language: Language, view: View) -> Reread:
    """The rows of a rollout as if what `view` says had been its prompt."""

    def read(group: Group, rollout: Rollout) -> Sequence[Rollout]:
        seen = view(group, rollout)
        if seen is None or not rollout.turns:
            return rollout.rows
        return reread(language, rollout, seen).rows

    return read
