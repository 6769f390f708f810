"""Tiny models and tables of tasks of a user, for tests of the command line."""

import json
import shutil
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.helpers.user_code import TEMPLATES


def tiny_model(folder: Path, *, end: str = "<end>") -> None:
    """A Llama of one layer with a context of 64 characters; it has no pad token."""
    alphabet = ["<end>", *map(chr, range(32, 127)), "\n"]
    vocabulary = {char: number for number, char in enumerate(alphabet)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=" "))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    special_tokens = {"eos_token": end} if end else {}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special_tokens).save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(alphabet),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
        bos_token_id=None,
        eos_token_id=0 if end else None,
        pad_token_id=None,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)


def write_models(folder: Path) -> None:
    tiny_model(folder / "model")
    tiny_model(folder / "endless", end="")
    for name, removed in (("no_config", "config.json"), ("no_tokenizer", "tokenizer")):
        shutil.copytree(folder / "model", folder / name)
        for path in (folder / name).glob(f"{removed}*"):
            path.unlink()
    (folder / "empty").mkdir()
    shutil.copytree(folder / "model", folder / "pickled")
    weights = LlamaForCausalLM.from_pretrained(folder / "pickled").state_dict()
    torch.save(weights, folder / "pickled" / "pytorch_model.bin")
    (folder / "pickled" / "model.safetensors").unlink()


# a red pixel
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQ"
    "DJ/pLvAAAAAElFTkSuQmCC"
)
PICTURED_ROWS = {
    "picture": {"prompt": "?", "image": PIXEL},
    "lost_picture": {"prompt": "?", "image": "lost.png"},
    "broken_picture": {"prompt": "?", "image": "data:image/png;base64,iVBORw0KGgo="},
    "web_picture": {"prompt": "?", "image": "https://example.org/a.png"},
    "ftp_picture": {"prompt": "?", "image": "ftp://example.org/a.png"},
    "device_picture": {"prompt": "?", "image": "/dev/zero"},
    "secret_picture": {"prompt": "?", "image": "/etc/passwd"},
    "two_pictures": {
        "prompt": [{"role": "user", "content": [{"type": "image"}]}],
        "images": [PIXEL, PIXEL],
    },
    "no_frames": {"prompt": "?", "video": []},
}


def write_tasks(folder: Path) -> None:
    rows = [json.dumps({"prompt": f"{i} + 1 =", "answer": str(i + 1)}) for i in range(12)]
    tables = {
        "tasks": rows,
        "empty": [],
        "torn": [*rows[:2], '{"prompt": "2 + 1 ="', *rows[3:]],
        "demonstrations": [f'{{"prompt": "{i} + 1 =", "completion": "{i + 1}"}}' for i in range(9)],
        "some_completions": [
            *(f'{{"prompt": "{i} + 1 =", "completion": "{i + 1}"}}' for i in range(4)),
            *(f'{{"prompt": "{i} + 2 ="}}' for i in range(2)),
        ],
        "unanswered": ['{"messages": [{"role": "user", "content": "Hi"}]}'],
        "pairs": [f'{{"prompt": "{i}", "chosen": "b", "rejected": "c"}}' for i in range(9)],
        "equal_pair": ['{"prompt": "a", "chosen": "b", "rejected": "b"}'],
        "empty_pair": ['{"prompt": "a", "chosen": "b", "rejected": ""}'],
        "some_pairs": [
            *['{"prompt": "a", "chosen": "b", "rejected": "c"}'] * 3,
            '{"prompt": "a", "chosen": "b"}',
        ],
        "long_pair": ['{"prompt": "a", "chosen": "b", "rejected": "%s"}' % ("c" * 80)],
        "labels": ['{"prompt": "a", "completion": "b", "label": true}'],
        "bad_label": ['{"prompt": "a", "completion": "b", "label": "good"}'],
        "empty_completion": ['{"prompt": "a", "completion": ""}'],
        "texts": ['{"text": "1 + 1 = 2"}'],
        "questions": [row.replace("prompt", "question") for row in rows],
        "styled": ['{"prompt": "1", "chat_template_kwargs": {"styl": true}}'],
        "long": [json.dumps({"prompt": "1 + " * 20 + "1 =", "answer": "21"}), *rows],
    }
    tables |= {name: [json.dumps(row)] for name, row in PICTURED_ROWS.items()}
    for name, lines in tables.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    for name, text in TEMPLATES.items():
        (folder / f"{name}.jinja").write_text(text)
