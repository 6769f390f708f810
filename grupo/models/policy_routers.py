"""The routers of a policy that is a mixture of experts: their loss, replay and statistics."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import PreTrainedModel

from grupo.algo.load_balancing import RouterSums
from grupo.core.signal_names import EXPERT_COST
from grupo.kernels.packing.hf_attention import text_decoder
from grupo.kernels.routing import Routers, install_routers, replay_problem
from grupo.kernels.trial_rows import trial_rows
from grupo.models.causal_spec import CausalSpec
from grupo.models.evaluator import Evaluator, PackedEvaluator
from grupo.models.row_routing import RowRouting
from grupo.util.errors import ConfigError

ROUTES = "routes"  # the input of a batch with the experts that are replayed


@dataclass
class PolicyRouters:
    """The routers of a policy.

    Args:
        sizes: of the routers.
        aux_loss: coefficient of the load-balancing loss.
        is_replayed: whether the experts chosen while sampling are used again.
        last_sums: of the last forward pass whose signals were computed.
    """

    sizes: Routers
    aux_loss: float
    is_replayed: bool
    last_sums: RouterSums | None = None

    def row_routing(self, inputs: Mapping[str, Any]) -> RowRouting:
        """The routing of a forward pass over the rows of a batch."""
        return RowRouting(self.sizes, inputs.get(ROUTES) if self.is_replayed else None)

    def row_losses(
        self, routing: RowRouting, inputs: Mapping[str, Any], mask: Bool[Tensor, "N T"]
    ) -> Float[Tensor, "N T"]:
        """Each row's share of the loss, at its first action.

        Args:
            routing: of the pass over the rows.
            inputs: of the batch; `EXPERT_COST` is that of all rows of the update. Default: the rows
                are all rows of the update.
            mask: of the batch.
        """
        cost = inputs[EXPERT_COST][0] if EXPERT_COST in inputs else routing.sums().expert_cost
        losses = self.aux_loss * routing.row_costs(cost)
        first = torch.zeros(mask.shape, device=losses.device)
        first[torch.arange(len(mask)), mask.long().argmax(1)] = 1.0
        return first * losses[:, None]


def policy_routers(spec: CausalSpec, model: PreTrainedModel) -> PolicyRouters | None:
    """The routers of a policy's model; None if it has none.

    Raises:
        ConfigError: `router_aux_loss` or `router_replay` is set, and the model has no routers that
            it can be applied to.
    """
    if model.dtype == torch.float64 and model._can_set_experts_implementation():
        model.set_experts_implementation("eager")  # grouped products of torch have no float64
    decoder, rows = text_decoder(model), trial_rows(model)
    sizes = install_routers(decoder, rows)
    fields = {"router_aux_loss": spec.router_aux_loss, "router_replay": spec.router_replay}
    field = next((name for name, value in fields.items() if value), "")
    if field and not sizes:
        raise ConfigError(
            f"{field}: {fields[field]!r}, and {type(model).__name__} has no routers of"
            " experts. Allowed: the default, or a mixture of experts such as Qwen3-MoE."
        )
    if not sizes:
        return None
    if spec.router_replay and (problem := replay_problem(decoder, rows, sizes)):
        raise ConfigError(
            f"router_replay: True, and {type(model).__name__} {problem}. Allowed: False."
        )
    return PolicyRouters(sizes, spec.router_aux_loss, spec.router_replay)


def check_records_routes(evaluator: Evaluator) -> None:
    """Raise `ConfigError` if answers are generated without a record of the chosen experts."""
    if not isinstance(evaluator, PackedEvaluator):
        raise ConfigError(
            f"router_replay: True, and transformers generates, which records no experts."
            f" {evaluator.warning} Allowed: False, or a model with packed attention."
        )
