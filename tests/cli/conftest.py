"""The folder of a user, and the command line as run in it."""

import hashlib
import json
import shutil
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from grupo.cli.main import main
from tests.helpers.command_line import Command, run_command
from tests.helpers.malformed_gguf import write_malformed_gguf
from tests.helpers.recipe_files import RECIPE_FILES, TRL_SCRIPT
from tests.helpers.run_outcomes import flip_bit

RECIPE = """
from grupo.envs import RewardTerm, SingleTurn, raise_error
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Evaluation, Recipe
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks import DatasetTasks

RECIPE = Recipe(
    policy=CausalLM("model", max_new_tokens=8),
    env=SingleTurn((RewardTerm("digits", "rewards.py:digits"),)),
    tasks=DatasetTasks("tasks.jsonl"),
    eval_tasks=4,
    method=Method(sampler=GroupSampler(4)),
    max_steps=2,
    prompts_per_step=2,
    learning_rate=1e-3,
    evaluation=Evaluation(attempts=2),
)
OTHER = RECIPE.replace(prompts_per_step=3)
STRICT = RECIPE.replace(
    env=SingleTurn(
        (RewardTerm("nothing", "rewards.py:nothing"),), on_failure=raise_error
    )
)
NUMBER = 3
"""
REWARDS = """
import signal

interrupted = []


def digits(task, rollout):
    return sum(map(str.isdigit, rollout.text)) / max(1, len(rollout.text))


def words(completions, **columns):
    return [float(" " in text) for text in completions]


def nothing(task, rollout):
    return float("nan")


def odd(left, right):
    return 0.0


def interrupt(task, rollout):
    interrupted.append(True)
    if len(interrupted) == 2:  # the first call is the trial before the run
        signal.raise_signal(signal.SIGINT)
    return 0.0


NUMBER = 3
"""
METHOD = '''
"""Half: half the advantage. An example, not a paper."""

from grupo.algo.advantages import Center, chain
from grupo.method import Method


def halved(x, batch):
    """x / 2."""
    return x / 2


def half(group_size: int = 4) -> Method:
    """A = (r - mean(r)) / 2."""
    return Method(advantage=chain(Center(), halved))


def by_number(x, batch):
    """Depends on the numbering of the groups."""
    return x * batch.group


BROKEN = Method(advantage=by_number)
'''

FUNCTIONS = """
def raises_key_error():
    yield {"prompt": "1"}
    raise KeyError("a")

def recurses():
    return recurses()

def surrogate():
    yield {"prompt": "a \\ud800"}

def exits():
    raise SystemExit(0)

def no_memory():
    raise MemoryError

def escapes():
    raise ValueError("\\x1b]52;c;aGk=\\x07\\x1b[2J")

def needs(number):
    yield {"prompt": "1"}

def cyclic():
    values = []
    values += [values, values]
    yield {"prompt": "1", "values": values}

class Attribute:
    def __getattr__(self, name):
        raise RuntimeError(name)

attribute = Attribute()
"""
TEMPLATES = {
    "chat": "{{ messages[0].content }}{% if style %}.{% endif %}",
    "blank": " ",
    "open": "{% for m in messages %}{{ m.content }}",
    "loops": 3 * "{% for i in range(99999) %}" + 3 * "{% endfor %}" + "{{ messages }}",
    "raises": "{{ raise_exception('roles must alternate') }}",
}
RECIPES = "from recipe import RECIPE\n\nRECIPES = {'a': RECIPE, 'b': RECIPE.replace(seed=1)}\n"


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


def write_malformed_rows(folder: Path) -> None:
    """Tables whose last line is malformed."""
    good = [json.dumps({"prompt": f"{i} + 1 ="}) for i in range(8)]
    rows = {
        "nan": '{"prompt": "1", "answer": NaN}',
        "twice": '{"prompt": "1", "prompt": "2"}',
        "surrogate": '{"prompt": "a \\ud800"}',
        "deep": '{"prompt": "1", "answer": ' + "[" * 900 + "]" * 900 + "}",
    }
    for name, row in rows.items():
        (folder / f"{name}.jsonl").write_text("\n".join([*good, row]))


def write_malformed_models(folder: Path) -> None:
    """Copies of the model with malformed configurations."""
    config = json.loads((folder / "model" / "config.json").read_text())
    texts = {
        "c_list": "[]",
        "c_null": "null",
        "c_deep": "[" * 900 + "]" * 900,
        "c_types": json.dumps(config | {"hidden_size": "many"}),
        "c_heads": json.dumps(config | {"num_attention_heads": 0}),
        "c_layers": json.dumps(config | {"num_hidden_layers": 10**9}),
    }
    for name, text in {**texts, "c_tokenizer": ""}.items():
        shutil.copytree(folder / "model", folder / name)
        (folder / name / "config.json").write_text(text or json.dumps(config))
    (folder / "c_tokenizer" / "tokenizer_config.json").write_text("[]")


def write_damaged_runs(folder: Path) -> None:
    """Runs of an older version, and journals with errors."""
    for name in ("older", "odd", "torn", "flipped"):
        shutil.copytree(folder / "run", folder / name)
    flip_bit(folder / "flipped" / "rollouts.jsonl", 30)
    recipe = json.loads((folder / "older" / "recipe.json").read_text())["recipe"] | {"epochs": 1}
    fingerprint = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
    data = {"fingerprint": fingerprint, "recipe": recipe}
    (folder / "older" / "recipe.json").write_text(json.dumps(data, indent=1))
    journal = folder / "older" / "rollouts.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for line in lines:
        del line["reward_terms"], line["error"]
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with (folder / "odd" / "metrics.jsonl").open("a") as file:
        file.write('{"step": [2]}\n')
    journal = folder / "torn" / "rollouts.jsonl"
    journal.write_text("{\n" + journal.read_text())


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models, tasks, rewards, recipes and a finished run; `docs/bad_input.md` lists them."""
    folder = tmp_path_factory.mktemp("home")
    write_models(folder)
    write_tasks(folder)
    (folder / "recipe.py").write_text(RECIPE)
    (folder / "broken.py").write_text("from grupo.recipe import Recipe\nRECIPE = Recipe(\n")
    (folder / "needy.py").write_text("\nimport nothing_that_is_here\n")
    (folder / "rewards.py").write_text(REWARDS)
    (folder / "method.py").write_text(METHOD)
    (folder / "functions.py").write_text(FUNCTIONS)
    (folder / "several.py").write_text(RECIPES)
    for name, text in {"grpo.py": TRL_SCRIPT, **RECIPE_FILES}.items():
        (folder / name).write_text(text)
    write_malformed_rows(folder)
    write_malformed_models(folder)
    write_malformed_gguf(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with pytest.raises(SystemExit) as end:
            main(["train", "recipe.py", "--run", "run"])
    assert not end.value.code
    for name in ("edited", "damaged"):
        shutil.copytree(folder / "run", folder / name)
    text = (folder / "edited" / "recipe.json").read_text()
    (folder / "edited" / "recipe.json").write_text(text.replace('"max_steps": 2', '"max_steps": 3'))
    write_damaged_runs(folder)
    for path in (folder / "damaged" / "checkpoints").glob("*/weights.safetensors"):
        *whole, last = path.read_bytes()
        path.write_bytes(bytes([*whole, last ^ 1]))
    return folder


@pytest.fixture
def short_smoke_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """`grupo methods check` trains for two steps; tests/testing/smoke has tests of all steps."""
    module = import_module("grupo.testing.smoke.report_card")
    monkeypatch.setattr(module, "train_on_echo", partial(module.train_on_echo, max_steps=2))


@pytest.fixture
def grupo(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Command:
    """Run a command line in `home`; returns the exit code, standard output and standard error."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("COLUMNS", "200")

    return run_command(capsys)
