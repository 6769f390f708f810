"""A toy vision-language model, trained from scratch until it answers some questions on scenes."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import (
    CLIPImageProcessorPil,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

from grupo.core.component import component
from grupo.models.quiet_loading import quiet_transformers
from grupo.toy.model_dir import model_dir_of
from grupo.toy.picture_examples import PictureExample, PictureExamples, SceneExamples
from grupo.toy.tokenizers import END_TOKEN, word_tokenizer
from grupo.training.callbacks import Callback, NullCallback
from grupo.util.rng import make_rng, seed_torch

IMAGE_TOKEN = "<image>"
ROLE_PREFIXES = ("user: ", "assistant: ")
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {% for part in m.content %}"
    "{% if part.type == 'image' %}" + IMAGE_TOKEN + "{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% if m.role == 'assistant' %}" + END_TOKEN + "{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
DARK = 0.15  # mean brightness of backgrounds, of 1
IGNORED = -100  # label of tokens that are not trained


@component
class ToyVisionLM:
    """A LLaVA of a CLIP tower and a Llama, fine-tuned on examples until it answers some of them.

    The default has captions of scenes, which teach the tower to see, and so few questions that
    the model answers only a part of them. Reinforcement learning goes on from there.

    Args:
        examples: Pictures with prompts and answers.
        tags: Texts that are one token each, such as "<answer>".
        hidden_size: Size of the hidden states of both parts.
        tower_layers: Layers of the tower.
        text_layers: Layers of the language model.
        patch_size: Pixels along a patch.
        batch_size: Examples of a step.
        max_steps: Number of steps.
        learning_rate: Peak learning rate.
        context_length: Longest sequence in tokens.
        seed: Seed of weights and examples.
    """

    examples: PictureExamples = SceneExamples()
    tags: tuple[str, ...] = ()
    hidden_size: int = 64
    tower_layers: int = 4
    text_layers: int = 2
    patch_size: int = 8
    batch_size: int = 64
    max_steps: int = 700
    learning_rate: float = 2e-3
    context_length: int = 128
    seed: int = 0

    @property
    def picture_tokens(self) -> int:
        """Tokens of a picture."""
        return (self.examples.image_size // self.patch_size) ** 2

    @property
    def model_dir(self) -> Path:
        """The folder of the trained model; equal specifications share it."""
        return model_dir_of(self, "pictures")

    def processor(self) -> LlavaProcessor:
        """The processor: pictures as patches, words as tokens."""
        pixels = self.examples.image_size
        return LlavaProcessor(
            CLIPImageProcessorPil(
                size={"shortest_edge": pixels},
                crop_size={"height": pixels, "width": pixels},
                image_mean=[DARK] * 3,  # so that the background is near 0
                image_std=[0.3] * 3,
            ),
            self.tokenizer(),
            patch_size=self.patch_size,
            vision_feature_select_strategy="default",
            num_additional_image_tokens=1,
            chat_template=CHAT_TEMPLATE,
        )

    def tokenizer(self) -> PreTrainedTokenizerFast:
        """A tokenizer of the tags, of the words of the examples, and of characters."""
        tags = (*ROLE_PREFIXES, *self.tags)
        tokenizer = word_tokenizer([*ROLE_PREFIXES, *self.examples.texts()], tags)
        tokenizer.add_special_tokens({"additional_special_tokens": [IMAGE_TOKEN]})
        tokenizer.pad_token = END_TOKEN
        return tokenizer

    def untrained_model(self, tokenizer: PreTrainedTokenizerFast) -> LlavaForConditionalGeneration:
        """The model with random weights."""
        seed_torch(self.seed, "plant")
        width: dict[str, Any] = {
            "hidden_size": self.hidden_size,
            "intermediate_size": 3 * self.hidden_size,
        }
        ids = tokenizer.get_vocab()
        end = ids[END_TOKEN]
        tower = CLIPVisionConfig(
            **width,
            num_hidden_layers=self.tower_layers,
            num_attention_heads=4,
            image_size=self.examples.image_size,
            patch_size=self.patch_size,
            projection_dim=self.hidden_size,
            initializer_range=0.1,  # wider than for large models: positions and patches count
            initializer_factor=2.0,
        )
        text = LlamaConfig(
            **width,
            vocab_size=len(tokenizer),
            num_hidden_layers=self.text_layers,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=self.context_length,
            tie_word_embeddings=True,
            initializer_range=0.08,
            eos_token_id=end,
            bos_token_id=None,
            pad_token_id=end,
        )
        config = LlavaConfig(
            vision_config=tower,
            text_config=text,
            image_token_index=ids[IMAGE_TOKEN],
            image_seq_length=self.picture_tokens,
            vision_feature_layer=-1,
            tie_word_embeddings=True,
        )
        return LlavaForConditionalGeneration(config)


def ensure_trained_vision(toy_model: ToyVisionLM, callback: Callback = NullCallback()) -> Path:
    """The folder of the trained model; trains it first if it does not exist."""
    if not (toy_model.model_dir / "config.json").is_file():
        tmp = toy_model.model_dir.with_name(f"tmp.{uuid4().hex[:8]}")
        processor = toy_model.processor()
        with quiet_transformers():
            train_vision(toy_model, processor, callback).save_pretrained(tmp)
            processor.save_pretrained(tmp)
        shutil.rmtree(toy_model.model_dir, ignore_errors=True)
        tmp.rename(toy_model.model_dir)
    return toy_model.model_dir


def train_vision(
    toy_model: ToyVisionLM, processor: Any, callback: Callback = NullCallback()
) -> LlavaForConditionalGeneration:
    """Fine-tune an untrained model on the examples: all weights, tower included."""
    rng = make_rng(toy_model.seed, "scenes")
    model = toy_model.untrained_model(processor.tokenizer).train()
    optimizer = torch.optim.AdamW(model.parameters(), toy_model.learning_rate)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, toy_model.learning_rate, toy_model.max_steps, pct_start=0.05
    )
    for step in range(toy_model.max_steps):
        examples = [toy_model.examples.draw(rng) for _ in range(toy_model.batch_size)]
        loss = _loss(model, collate_examples(examples, processor, toy_model.picture_tokens))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 50 == 0:
            callback.on_message(f"step {step + 1} of {toy_model.max_steps}: loss {loss.item():.3f}")
    return model.eval()


def collate_examples(
    examples: Sequence[PictureExample], processor: Any, picture_tokens: int
) -> dict[str, Tensor]:
    """Padded rows of tokens, their labels, which answers have only, and the pictures.

    Args:
        examples: The rows.
        processor: The processor of the model.
        picture_tokens: Tokens of a picture.
    """
    pictures = [pixels for example in examples for pixels in example.pictures]
    tokenizer = processor.tokenizer
    rows, labels = list[Tensor](), list[Tensor]()
    for example in examples:
        images = IMAGE_TOKEN * (picture_tokens * len(example.pictures))
        prompt = tokenizer(f"user: {images}{example.prompt}\nassistant: ")["input_ids"]
        reply = [*tokenizer(example.answer)["input_ids"], tokenizer.eos_token_id]
        rows.append(torch.tensor([*prompt, *reply]))
        labels.append(torch.tensor([IGNORED] * len(prompt) + reply))
    pad = torch.nn.utils.rnn.pad_sequence
    return {
        "input_ids": pad(rows, batch_first=True, padding_value=tokenizer.pad_token_id),
        "labels": pad(labels, batch_first=True, padding_value=IGNORED),
        "pixel_values": processor.image_processor(pictures, return_tensors="pt")["pixel_values"],
    }


def _loss(model: LlavaForConditionalGeneration, batch: dict[str, Tensor]) -> Tensor:
    """The mean over rows of the mean negative log-likelihood of answer tokens."""
    labels = batch.pop("labels")[:, 1:]
    logits = model(**batch).logits[:, :-1]
    nll = cross_entropy(logits.transpose(1, 2), labels, ignore_index=IGNORED, reduction="none")
    return (nll.sum(1) / (labels != IGNORED).sum(1)).mean()
