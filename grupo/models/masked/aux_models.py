"""Whom a masked diffusion policy can be compared with: a reference, and itself when hotter."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from grupo.core.batch import Batch, Signals
from grupo.core.errors import ConfigError
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.signal_names import split_name, temperature_of
from grupo.models.aux_models import AuxModels
from grupo.training.update import Scorer

if TYPE_CHECKING:
    from grupo.models.masked_diffusion import MaskedPolicy


@dataclass(frozen=True)
class MaskedTemperatureScaled:
    """A policy at `factor` times its temperature."""

    policy: "MaskedPolicy"
    factor: float

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        return self.policy.signals_with_sampling(
            batch, names, self.policy.spec.sampling.adjust(self.factor)
        )


def load_aux_models(
    policy: "MaskedPolicy", required_signals: Collection[str], reference_update: ReferenceUpdate
) -> AuxModels:
    """Everybody whom `required_signals` names; the reference is a frozen copy, or one that follows."""
    asked = {who for _, who in map(split_name, required_signals) if who and who != "sampler"}
    speakers: dict[str, Scorer] = {
        who: MaskedTemperatureScaled(policy, f) for who in asked if (f := temperature_of(who))
    }
    strange = sorted(asked - set(speakers) - {"ref"})
    if strange:
        raise ConfigError(
            f"others: {strange[0]!r}. Allowed of a masked diffusion policy: 'ref', and itself at"
            " another temperature, as 't=1.2'."
        )
    following: dict[str, Tensor] = {}
    if "ref" in asked:
        policy.reference = policy.load_frozen_copy()
        speakers["ref"] = policy.reference
        following = (
            dict(policy.reference.module.named_parameters()) if reference_update.rate else {}
        )
    return AuxModels(speakers, {}, reference_update, following)
