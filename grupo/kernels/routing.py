"""Routers of mixtures of experts: the experts that they choose, and experts that are given to them.

A forward pass takes a `RouterPass` as the keyword argument `routing`, as it takes the `layout` of
its attention, and each layer hands it to its router.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.utils.output_capturing import OutputRecorder

# of models whose modules are of another kind
MODEL_ERRORS = (KeyError, TypeError, ValueError, RuntimeError, AttributeError, IndexError)
OWN_CHOICE = -1  # in place of given experts: the router chooses them


@dataclass(frozen=True)
class Routers:
    """Sizes of the routers of a model.

    Args:
        layers: number of layers with a router.
        experts: number of experts of a layer, shared ones not counted.
        top_k: number of experts that a router chooses for a token.
    """

    layers: int
    experts: int
    top_k: int


class RouterPass:
    """Logits and chosen experts of the routers in one forward pass.

    Args:
        given: experts that they take instead of their own choice; `OWN_CHOICE` where they choose.
            The weights of given experts are those that the router computes for them, and have
            gradients. Default: the routers choose.
    """

    def __init__(self, given: Int[Tensor, "layers M k"] | None = None) -> None:
        self.given = given
        self.logits: dict[int, Float[Tensor, "M experts"]] = {}  # by layer
        self.chosen: dict[int, Int[Tensor, "M k"]] = {}  # by layer

    def routes(self) -> Int[Tensor, "M layers*k"]:
        """The chosen experts of each token, one layer after another."""
        return torch.cat([self.chosen[layer] for layer in sorted(self.chosen)], 1).to(torch.int16)

    def route(self, router: nn.Module, layer: int, args: tuple[Any, ...], output: Any) -> Any:
        """The output of a router, with the given experts if there are any."""
        if self.given is not None:
            with _GivenExperts(self.given[layer], output[0].shape[-1]):
                output = router.forward(*args)
        self.logits[layer], _, self.chosen[layer] = output
        return output


def routing_argument(routing: RouterPass | None) -> dict[str, RouterPass]:
    """The keyword argument of a forward pass; none for models without routers."""
    return {"routing": routing} if routing else {}


class _GivenExperts(TorchFunctionMode):
    """Replaces the experts that `topk` selects in a router: its own formula then weights them."""

    def __init__(self, given: Int[Tensor, "M k"], experts: int) -> None:
        super().__init__()
        self.given = given
        self.experts = experts

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func not in (torch.topk, Tensor.topk) or args[0].shape[-1] != self.experts:
            return result
        if result.indices.shape != self.given.shape:  # some routers select groups of experts first
            return result
        chosen = torch.where(self.given == OWN_CHOICE, result.indices, self.given)
        return torch.return_types.topk((args[0].gather(-1, chosen), chosen))


def install_routers(decoder: Any, trial_rows: Int[Tensor, "N L"]) -> Routers | None:
    """Lets forward passes of a decoder take a `RouterPass`.

    Returns None if the decoder has no routers, or if they do not return their logits, and the
    weights and numbers of the experts that they choose.

    Args:
        decoder: the part of a model that turns tokens into hidden states.
        trial_rows: rows of ordinary tokens.
    """
    recorder = (getattr(decoder, "_can_record_outputs", None) or {}).get("router_logits")
    if not isinstance(recorder, OutputRecorder):
        return None
    layers = [x for x in decoder.modules() if isinstance(x, GradientCheckpointingLayer)]
    pairs = [(_attention_of(layer), _router_of(layer, recorder.target_class)) for layer in layers]
    routed = [(attention, router) for attention, router in pairs if attention and router]
    for number, (attention, router) in enumerate(routed):
        _hook(attention, router, number)
    return _sizes(decoder, trial_rows, len(routed)) if routed else None


def _attention_of(layer: nn.Module) -> nn.Module | None:
    children = layer.children()
    return next((x for x in children if type(x).__name__.endswith("Attention")), None)


def _router_of(layer: nn.Module, kind: type[nn.Module]) -> nn.Module | None:
    return next((x for x in layer.modules() if isinstance(x, kind)), None)


@torch.no_grad()
def replay_problem(decoder: Any, trial_rows: Int[Tensor, "N L"], routers: Routers) -> str:
    """Why the routers of a decoder do not take given experts; "" if they do."""
    own = RouterPass()
    hidden = _hidden_states(decoder, trial_rows, own)
    given = torch.stack([own.chosen[layer] for layer in range(routers.layers)])
    if not torch.equal(_hidden_states(decoder, trial_rows, RouterPass(given)), hidden):
        return "gives other hidden states with the experts that it has chosen itself"
    others = (given + 1) % routers.experts
    replayed = RouterPass(others)
    _hidden_states(decoder, trial_rows, replayed)
    taken = torch.stack([replayed.chosen[layer] for layer in range(routers.layers)])
    return "" if torch.equal(taken, others) else "chooses experts in another way than by topk"


@torch.no_grad()
def _sizes(decoder: Any, trial_rows: Tensor, layers: int) -> Routers | None:
    routing = RouterPass()
    try:
        _hidden_states(decoder, trial_rows, routing)
    except MODEL_ERRORS:  # a module of another kind takes no further arguments
        return None
    sizes = {
        (logits.shape[-1], routing.chosen[layer].shape[-1])
        for layer, logits in routing.logits.items()
    }
    is_uniform = len(sizes) == 1 and len(routing.logits) == layers
    return Routers(layers, *sizes.pop()) if is_uniform else None


def _hidden_states(decoder: Any, rows: Tensor, routing: RouterPass) -> Tensor:
    return decoder(input_ids=rows, use_cache=False, **routing_argument(routing)).last_hidden_state


def _hook(attention: nn.Module, router: nn.Module, number: int) -> None:
    """Hands a pass from the attention of a layer to its router; copies of the model do so, too.

    The attention takes all keyword arguments of the layer, also when checkpointing computes the
    layer again: that calls the layer's forward function without the hooks of the layer.
    """
    if "routing" in vars(router):
        return
    vars(router).update({"routing": None, "layer_number": number})
    vars(attention)["layer_router"] = router  # not as a submodule, which checkpoints would name
    attention.register_forward_pre_hook(_take_pass, with_kwargs=True)
    router.register_forward_hook(_route)


def _take_pass(attention: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    attention.layer_router.routing = kwargs.get("routing")
    return args, {name: x for name, x in kwargs.items() if name != "routing"}


def _route(router: Any, args: tuple[Any, ...], output: Any) -> Any:
    routing, router.routing = router.routing, None
    if routing is None or not isinstance(output, tuple) or len(output) != 3:
        return output
    return routing.route(router, router.layer_number, args, output)
