"""The size of a causal language model, from its config file and without its weights."""

import torch
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedConfig

from grupo.core.component import component
from grupo.core.ranges import Measured
from grupo.kernels.llama.structure import is_llama
from grupo.models.config_file import check_config_file
from grupo.models.loading import check_model_exists, context_length_of, load_config
from grupo.models.quiet_loading import quiet_transformers
from grupo.util.loader_errors import loader_errors


@component
class LinearLayer:
    """A linear layer of a model.

    Args:
        name: Name of the module.
        inputs: Number of inputs.
        outputs: Number of outputs.
    """

    name: str
    inputs: int
    outputs: int


@component
class ModelSize:
    """Numbers of a model that decide how it is trained.

    Args:
        num_parameters: All parameters; shared ones count once.
        num_layers: Transformer layers.
        hidden_size: Size of the hidden state.
        vocab_size: Tokens of the vocabulary.
        kv_size: Numbers per token and layer in a KV cache.
        context_length: Most tokens of a prompt with its answer.
        linear_layers: The linear layers inside the transformer layers.
        num_embeddings: Matrices of the size of the vocabulary: 1 if the head is the embedding.
        is_llama: Whether the Llama kernels of the CPU can execute it.
    """

    num_parameters: Measured
    num_layers: int
    hidden_size: int
    vocab_size: int
    kv_size: Measured
    context_length: Measured
    linear_layers: tuple[LinearLayer, ...]
    num_embeddings: int = 1
    is_llama: bool = False

    @property
    def head_parameters(self) -> int:
        """Parameters of the head, which computes logits."""
        return self.vocab_size * self.hidden_size

    @property
    def layer_parameters(self) -> int:
        """Parameters besides those of the head and of the embedding, which only looks up rows."""
        return self.num_parameters - self.num_embeddings * self.head_parameters

    @property
    def linear_outputs(self) -> int:
        """Outputs per token of all linear layers inside the transformer layers."""
        return sum(layer.outputs for layer in self.linear_layers)

    def num_adapter_parameters(self, rank: int, targets: str | tuple[str, ...]) -> int:
        """Parameters of LoRA adapters.

        Args:
            rank: Rank of the adapters.
            targets: Ends of names of layers; a text stands for all linear layers.
        """
        layers = (
            layer
            for layer in self.linear_layers
            if isinstance(targets, str)
            or f".{layer.name}".endswith(tuple(f".{t}" for t in targets))
        )
        return sum(rank * (layer.inputs + layer.outputs) for layer in layers)


def read_model_size(model: str) -> ModelSize:
    """The size of the model in a folder, in a GGUF file or on the hub, from its config file only.

    Raises:
        ConfigError: There is no such model, or its config file is malformed.
    """
    check_config_file(model)
    check_model_exists(model)
    with loader_errors(f"model: {model!r}"), quiet_transformers():
        return size_of_config(load_config(model))


def read_parameter_shapes(model: str) -> dict[str, tuple[int, ...]]:
    """The shape of each parameter by name; reads the config file only.

    Raises:
        ConfigError: There is no such model, or its config file is malformed.
    """
    check_config_file(model)
    check_model_exists(model)
    with loader_errors(f"model: {model!r}"), quiet_transformers(), torch.device("meta"):
        module = AutoModelForCausalLM.from_config(load_config(model))
    return {name: tuple(p.shape) for name, p in module.named_parameters()}


def kv_size_of(config: PreTrainedConfig) -> int:
    """Numbers per token and layer in a KV cache."""
    text = config.get_text_config()
    heads = text.num_attention_heads
    kv_heads = getattr(text, "num_key_value_heads", None) or heads
    head_size = getattr(text, "head_dim", None) or text.hidden_size // heads
    return 2 * kv_heads * head_size


def size_of_config(config: PreTrainedConfig) -> ModelSize:
    """The size of the model that a config of transformers describes; allocates no weights."""
    with torch.device("meta"):
        module = AutoModelForCausalLM.from_config(config)
    text = config.get_text_config()
    head = module.get_output_embeddings()
    linear = ((n, x) for n, x in module.named_modules() if isinstance(x, nn.Linear))
    return ModelSize(
        num_parameters=sum(p.numel() for p in module.parameters()),
        num_layers=text.num_hidden_layers,
        hidden_size=text.hidden_size,
        vocab_size=text.vocab_size,
        kv_size=kv_size_of(config),
        context_length=context_length_of(config),
        linear_layers=tuple(
            LinearLayer(n, x.in_features, x.out_features) for n, x in linear if x is not head
        ),
        num_embeddings=len({id(x.weight) for x in (head, module.get_input_embeddings())}),
        is_llama=is_llama(module),
    )
