"""The one function that turns the name of a model, as a recipe has it, into what is loaded."""

from pathlib import Path

from grupo.models.gguf.cache import converted_folder, is_gguf
from grupo.models.pretrained.smollm2 import NAME, smollm2


def model_folder(model: str) -> str:
    """The folder or hub name that transformers loads for the name of a model.

    A GGUF file is converted, once, into a folder in the cache of the user. The name of a model that
    grupo fetches is that of its folder there. Every other name is returned as it is.

    Args:
        model: A folder, a name on the hub, a GGUF file, or "smollm2".

    Raises:
        ConfigError: The GGUF file is missing or cannot be converted, or the model was not fetched.

    >>> model_folder("Qwen/Qwen3-0.6B")
    'Qwen/Qwen3-0.6B'
    """
    if is_gguf(model):
        return str(converted_folder(Path(model)))
    if model == NAME and not Path(model).exists():
        return str(smollm2())
    return model
