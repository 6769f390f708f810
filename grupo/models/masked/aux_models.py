"""Whom a masked diffusion policy can be compared with: a reference, and itself when hotter."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from grupo.core.batch import Batch, Signals
from grupo.core.errors import Refused
from grupo.core.reference_update import Follow
from grupo.core.signal_names import split, tempered
from grupo.models.aux_models import Company
from grupo.training.update import Speaks

if TYPE_CHECKING:
    from grupo.models.masked_diffusion import MaskedPolicy


@dataclass(frozen=True)
class Hotter:
    """A policy at `factor` times its temperature."""

    policy: "MaskedPolicy"
    factor: float

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        return self.policy.said(batch, names, self.policy.spec.sampling.at(self.factor))


def accompany(policy: "MaskedPolicy", needs: Collection[str], follow: Follow) -> Company:
    """Everybody whom `needs` names; the reference is a frozen copy, or one that follows."""
    asked = {who for _, who in map(split, needs) if who and who != "sampler"}
    speakers: dict[str, Speaks] = {who: Hotter(policy, f) for who in asked if (f := tempered(who))}
    strange = sorted(asked - set(speakers) - {"ref"})
    if strange:
        raise Refused(
            f"others: {strange[0]!r}. Allowed of a masked diffusion policy: 'ref', and itself at"
            " another temperature, as 't=1.2'."
        )
    following: dict[str, Tensor] = {}
    if "ref" in asked:
        policy.reference = policy.copy()
        speakers["ref"] = policy.reference
        following = dict(policy.reference.module.named_parameters()) if follow.rate else {}
    return Company(speakers, {}, follow, following)
