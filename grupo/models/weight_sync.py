"""Weight sync: connections to the weights that generation uses.

They are the trained model's own weights, a copy in the same process, or those of a server. A
snapshot of the trained model is loaded before rollouts are generated; with asynchronous rollouts it
is taken when a step is queued, and loaded when that step generates.
"""

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from grupo.core.response_use import generation_only
from grupo.inference.base import Engine
from grupo.inference.server_sharing import ServerSharing
from grupo.models import adapters
from grupo.models.generation_stream import GenerationStream
from grupo.models.trainable import TrainablePolicy

if TYPE_CHECKING:  # its import takes two seconds, which recipes need not wait for
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)
CPU = torch.device("cpu")
Weights = Mapping[str, Tensor]
EngineFactory = Callable[["PreTrainedModel"], Engine]  # returns an engine that samples from a model


class WeightSync(Protocol):
    """Transfers weights from the trained model to generation."""

    def snapshot(self) -> Weights:
        """The trained model's current weights, for `load`."""
        ...

    def load(self, weights: Weights) -> None:
        """Generate with these weights from now on."""
        ...

    def context(self) -> AbstractContextManager[Any]:
        """Context manager in which the engine generates."""
        ...

    def share_servers(self, sharing: ServerSharing) -> None:
        """Use the servers, if there are any, together with other processes of the same policy."""
        ...

    def release_memory(self) -> None:
        """Release memory that only generation needs; nothing is generated until `load`."""
        ...

    def close(self) -> None:
        """Release the engine's resources; nothing is generated afterwards."""
        ...


class LMWeightSync(WeightSync, Protocol):
    """Weight sync of a language model, with its inference engine."""

    def engine(self) -> Engine:
        """Engine for requests until other weights are loaded."""
        ...


class SharedWeights:
    """Generation from the trained model itself: snapshots are empty."""

    def __init__(self, model: "PreTrainedModel", engine_factory: EngineFactory) -> None:
        self.model = model
        self.engine_factory = engine_factory

    def snapshot(self) -> Weights:
        return {}

    def load(self, weights: Weights) -> None:
        pass

    def engine(self) -> Engine:
        return self.engine_factory(self.model)

    def context(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def share_servers(self, sharing: ServerSharing) -> None:
        pass

    def release_memory(self) -> None:
        pass

    def close(self) -> None:
        pass


class CopiedWeights(SharedWeights):
    """Generation from a copy of the model, so that training can run at the same time."""

    def __init__(self, model: "PreTrainedModel", engine_factory: EngineFactory) -> None:
        self.trained_model = model
        # parameters require gradients as before: autocast keeps the casts of no others
        super().__init__(copy.deepcopy(model), engine_factory)
        self.stream = GenerationStream(model.device)

    def engine(self) -> Engine:
        with generation_only():  # an update reads activations of the trained model alone
            return super().engine()

    def snapshot(self) -> Weights:
        copies = {name: x.detach().clone() for name, x in self.trained_model.named_parameters()}
        self.stream.wait()
        return copies

    @torch.no_grad()
    def load(self, weights: Weights) -> None:
        with self.stream():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(weights[name])
            self.stream.wait()  # the snapshot may be deleted afterwards

    def context(self) -> AbstractContextManager[Any]:
        return self.stream()


def checkpoint_weights(model: "PreTrainedModel", weights: Weights) -> Weights:
    """Weights under the names of published checkpoints, which servers read.

    transformers holds the experts of a layer in one tensor, a checkpoint has a tensor for each.

    Args:
        model: The model that they belong to.
        weights: By the names of its state, those of adapters left out.
    """
    from transformers.core_model_loading import revert_weight_conversion

    return revert_weight_conversion(model, dict(weights))


class WeightServer(Engine, Protocol):
    """An inference engine with weights of its own, such as `VllmEngine`."""

    def share(self, sharing: ServerSharing) -> None:
        """Use the servers together with other processes, of which one hands over the weights."""
        ...

    def adapter_problem(self, settings: Mapping[str, Any], modules: Sequence[str]) -> str:
        """Why the servers cannot apply an adapter, or "" if they can."""
        ...

    def publish_base(self, weights: Weights) -> None:
        """Keep the weights that the adapters of `load_adapter` belong to."""
        ...

    def load_adapter(self, weights: Weights, settings: Mapping[str, Any]) -> None:
        """Generate with this adapter from now on, on the weights of `publish_base`."""
        ...

    def load(self, weights: Weights) -> None:
        """Generate with these weights from now on."""
        ...

    def release_memory(self) -> None:
        """Release the server's memory until `load`, if it shall."""
        ...

    def close(self) -> None:
        """End the server if the engine started it."""
        ...


class ServerWeights:
    """Generation on a server, which receives all weights, or the adapters of a policy with LoRA.

    Args:
        policy: the trained policy.
        server: generates.
        dtype: of the weights on the server.
        sends_adapters: whether adapters are sent alone where the servers can apply them; otherwise
            they are merged into the weights.
        device: of snapshots.
    """

    def __init__(
        self,
        policy: TrainablePolicy,
        server: WeightServer,
        dtype: torch.dtype,
        *,
        sends_adapters: bool = True,
        device: torch.device = CPU,
    ) -> None:
        self.policy = policy
        self.server = server
        self.dtype = dtype
        self.device = device
        self.may_send_adapters = sends_adapters and policy.has_adapters
        self.has_base = False
        self.is_sender = True

    def snapshot(self) -> Weights:
        """A copy in the memory of this machine, or on the policy's device if the server opens it.

        It is empty if another process hands over the weights.
        """
        if not self.is_sender:
            return {}
        if self.sends_adapters:
            weights = adapters.adapter_weights(self.policy.module)
        else:
            model = self.policy.merged_model()
            weights = checkpoint_weights(model, model.state_dict())
        return adapters.copies_of(weights, self.dtype, self.device)

    @cached_property
    def sends_adapters(self) -> bool:
        """Whether adapters are sent alone; a warning gives the reason if they cannot."""
        if not self.may_send_adapters:
            return False
        problem = self._adapter_problem()
        if problem:
            logger.warning(
                "Adapters are merged into all weights for each update of the servers: %s.", problem
            )
        return not problem

    def _adapter_problem(self) -> str:
        module = self.policy.module
        problem = adapters.adapter_problem(module)
        if problem:
            return problem
        self.policy.release_memory()  # the server may be started on the same device
        settings = adapters.adapter_settings(module)
        return self.server.adapter_problem(settings, adapters.adapted_modules(module))

    def share_servers(self, sharing: ServerSharing) -> None:
        self.is_sender = sharing.is_sender
        self.server.share(sharing)

    def load(self, weights: Weights) -> None:
        self.policy.release_memory()  # the server may share the device
        if self.is_sender and self.sends_adapters:
            self._load_adapter(weights)
        else:
            self.server.load(weights)

    def _load_adapter(self, weights: Weights) -> None:
        module = self.policy.module
        if not self.has_base:  # it is frozen
            model: Any = module
            weights_below = adapters.base_weights(module)
            weights_below = checkpoint_weights(model.get_base_model(), weights_below)
            self.server.publish_base(adapters.copies_of(weights_below, self.dtype, self.device))
            self.has_base = True
        self.server.load_adapter(weights, adapters.adapter_settings(module))

    def release_memory(self) -> None:
        self.server.release_memory()

    def engine(self) -> Engine:
        return self.server

    def context(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def close(self) -> None:
        self.server.close()
