"""The largest prompt of a language model, from its config and tokenizer and without its weights."""

from typing import Any

from transformers import GenerationConfig, PreTrainedTokenizerBase

from grupo.core.validation import PromptLimit
from grupo.models import loading, masked_diffusion
from grupo.models.causal_lm import CausalLM
from grupo.models.config_file import check_config_file
from grupo.models.language_limits import language_model_limit, make_chat_tokenizer
from grupo.models.loaded import LoadedModel
from grupo.models.masked.denoiser import special_tokens
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.models.model_folder import model_folder
from grupo.models.multimodal.processor import MediaProcessor
from grupo.models.multimodal.processor_loading import load_processor
from grupo.models.multimodal.tokenizer import MultimodalTokenizer
from grupo.models.quiet_loading import quiet_transformers
from grupo.models.vision_lm import VisionLM
from grupo.util.loader_errors import loader_errors


def read_prompt_limit(policy: object) -> PromptLimit | None:
    """The largest prompt of a policy, before it is built; None if it is no language model.

    Raises:
        ConfigError: The model's files are missing or malformed, its answers could not end, or they
            leave no room for a prompt.
    """
    if isinstance(policy, CausalLM):
        return _causal(policy)
    return _masked(policy) if isinstance(policy, MaskedDiffusion) else None


def _causal(spec: CausalLM) -> PromptLimit:
    if isinstance(spec.model, LoadedModel):
        model, tokenizer = spec.model.model, spec.model.tokenizer
        config, generation = model.config, model.generation_config
    else:
        config, tokenizer = _read_files(spec.model)
        generation = _read_generation_config(spec.model, config)
    eos_token_ids = loading.eos_token_ids(generation, tokenizer)
    context_length = loading.context_length_of(config)
    chat_tokenizer = make_chat_tokenizer(spec, tokenizer, eos_token_ids, context_length)
    if isinstance(spec, VisionLM) and isinstance(spec.model, str):
        processor = MediaProcessor(load_processor(spec.model), config, spec.model)
        chat_tokenizer = MultimodalTokenizer.of(chat_tokenizer, processor, spec.max_frames)
    return language_model_limit(chat_tokenizer, context_length, spec.max_new_tokens)


def _masked(spec: MaskedDiffusion) -> PromptLimit:
    config, tokenizer = _read_files(spec.model)
    end, _ = special_tokens(tokenizer)
    context_length = masked_diffusion.context_length_of(config, tokenizer)
    chat_tokenizer = make_chat_tokenizer(spec, tokenizer, (end,), context_length)
    return language_model_limit(chat_tokenizer, context_length, spec.max_new_tokens)


def _read_files(model: str) -> tuple[Any, PreTrainedTokenizerBase]:
    """The config and the tokenizer of a model."""
    loading.check_model_exists(model)
    check_config_file(model)
    with loader_errors(f"model: {model!r}"), quiet_transformers():
        return loading.load_config(model), loading.load_tokenizer(model)


def _read_generation_config(model: str, config: Any) -> GenerationConfig:
    try:
        return GenerationConfig.from_pretrained(model_folder(model))
    except OSError:  # the model has no file of it
        return GenerationConfig.from_model_config(config)
