"""Auxiliary models of a masked diffusion policy: its reference, and other temperatures."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from grupo.core.batch import Batch, Signals
from grupo.core.errors import ConfigError
from grupo.core.interfaces import Scorer
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.signal_names import split_name, temperature_of
from grupo.models.aux_models import AuxModels

if TYPE_CHECKING:
    from grupo.models.masked_diffusion import MaskedPolicy


@dataclass(frozen=True)
class MaskedTemperatureScaled:
    """A masked diffusion policy at `factor` times its temperature."""

    policy: "MaskedPolicy"
    factor: float

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        sampling = self.policy.spec.sampling.adjust(self.factor)
        return self.policy.signals_with_sampling(batch, names, sampling)


def load_aux_models(
    policy: "MaskedPolicy", required_signals: Collection[str], reference_update: ReferenceUpdate
) -> AuxModels:
    """Load every auxiliary model that `required_signals` names; the reference is a copy."""
    owners = {owner for _, owner in map(split_name, required_signals)}
    required = owners - {"", "sampler"}
    scorers = dict[str, Scorer]()
    for name in required:
        if factor := temperature_of(name):
            scorers[name] = MaskedTemperatureScaled(policy, factor)
    unknown = sorted(required - set(scorers) - {"ref"})
    if unknown:
        raise ConfigError(
            f"aux_models: {unknown[0]!r}. Allowed with a masked diffusion policy: 'ref', and the"
            " policy at another temperature, as 't=1.2'."
        )
    reference_weights: dict[str, Tensor] = {}
    if "ref" in required:
        policy.reference = policy.load_frozen_copy()
        scorers["ref"] = policy.reference
        if reference_update.rate:
            reference_weights = dict(policy.reference.module.named_parameters())
    return AuxModels(scorers, {}, reference_update, reference_weights)
