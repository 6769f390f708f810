"""The weight sync of a policy whose rollouts vLLM servers generate."""

from grupo.core.dtypes import DTYPES
from grupo.inference.base import StopConditions
from grupo.inference.vllm import Vllm
from grupo.models.causal_spec import CausalSpec
from grupo.models.loading import load_config
from grupo.models.model_folder import model_folder
from grupo.models.quantized_weights import is_dequantized
from grupo.models.trainable import TrainablePolicy
from grupo.models.weight_sync import CPU, ServerWeights
from grupo.util.errors import ConfigError
from grupo.util.optional_deps import optional_dependency


def vllm_weights(
    policy: TrainablePolicy, engine: Vllm, spec: CausalSpec, stop_conditions: StopConditions
) -> ServerWeights:
    """Return the sync of a policy's weights with the vLLM servers that generate for the policy.

    Args:
        policy: The policy that is trained.
        engine: The servers.
        spec: The specification of the policy.
        stop_conditions: Conditions that end an answer.

    Raises:
        ConfigError: A package of the extra `vllm` is not installed, or the model's folder has
            quantized weights, which the server would load.
    """
    if is_dequantized(load_config(str(spec.model)).to_dict()):
        raise ConfigError(
            f"engine: {engine!r}, and its server would load the quantized weights of"
            f" {spec.model!r}. Allowed: a model with weights of 16 or 32 bits, such as"
            " `grupo export` writes of a run without engine."
        )
    with optional_dependency("aiohttp", "vllm"):
        from grupo.inference.vllm_engine import VllmEngine
    server = VllmEngine(
        engine,
        model_folder(str(spec.model)),
        stop_conditions,
        policy.device,
        lora_rank=spec.lora.rank if spec.lora and engine.adapters else 0,
    )
    return ServerWeights(
        policy,
        server,
        DTYPES[engine.dtype],
        sends_adapters=engine.adapters,
        device=policy.device if engine.weight_transfer == "ipc" else CPU,
    )
