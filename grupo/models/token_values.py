"""Values of the signals of every token: statistics, comparisons, predictions of heads."""

from collections.abc import Collection, Mapping

import torch
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.signal_names import is_comparison, split_name
from grupo.models.aux_heads import AuxHeads
from grupo.models.concentration import row_concentration
from grupo.models.signal_models import DistributionModel
from grupo.models.token_statistics import (
    TOKEN_SIGNALS,
    TokenDistributions,
    disagreement,
    token_signals,
)


def token_values(
    batch: Batch,
    names: Collection[str],
    own: TokenDistributions,
    signal_models: Mapping[str, DistributionModel[TokenDistributions]],
    aux_heads: AuxHeads,
) -> dict[str, Tensor]:
    """`logp` and other signals of every action, in the order of the batch's mask.

    Args:
        batch: the rows.
        names: the signals besides `logp`.
        own: the policy's distributions of the batch's actions.
        signal_models: models that the policy can be compared with, by name.
        aux_heads: heads whose predictions are signals.
    """
    per_token = (name for name in names if name in TOKEN_SIGNALS or is_comparison(name))
    compared = dict.fromkeys(split_name(name)[1] for name in names if is_comparison(name))
    with torch.no_grad():
        others = {name: signal_models[name].distributions(batch) for name in compared}
    values = token_signals(own, dict.fromkeys(("logp", *per_token)), others)
    for name in sorted(aux_heads.names.intersection(names)):
        model = aux_heads.models.get(name)
        states = model.distributions(batch) if model else own
        values[name] = aux_heads.predict(name, states.hidden.values)
    if "concentration" in names:
        row = batch.mask.nonzero()[:, 0]
        values["concentration"] = row_concentration(own.hidden.values, row, len(batch.mask))
    if "disagreement" in names:
        column = batch.mask.nonzero()[:, 1]
        values["disagreement"] = disagreement(own, column, len(batch.mask))
    return values
