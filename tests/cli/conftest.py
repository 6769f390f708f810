"""A folder as a user may have one, and the command line run in it as a user runs it."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from grupo.cli.main import main

RECIPE = """
from grupo.envs import Part, SingleTurn, stop
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Evaluation, Recipe
from grupo.rewards import Python
from grupo.rollouts.samplers import Independent
from grupo.method import Method
from grupo.tasks import Rows

RECIPE = Recipe(
    policy=CausalLM("model", limit=8),
    env=SingleTurn((Part("digits", Python("rewards.py:digits")),)),
    tasks=Rows("tasks.jsonl"),
    held_out=4,
    method=Method(sample=Independent(4)),
    steps=2,
    prompts=2,
    lr=1e-3,
    evaluation=Evaluation(attempts=2),
)
OTHER = RECIPE.but(prompts=3)
STRICT = RECIPE.but(
    env=SingleTurn((Part("nothing", Python("rewards.py:nothing")),), on_failure=stop)
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
    if len(interrupted) == 1:
        signal.raise_signal(signal.SIGINT)
    return 0.0


NUMBER = 3
"""
METHOD = '''
"""Half: half an advantage. An example, not a paper."""

from grupo.algo.advantages import Center, chain
from grupo.method import Method


def halved(x, batch):
    """x / 2."""
    return x / 2


def half(group: int = 4) -> Method:
    """A = (r - mean(r)) / 2."""
    return Method(advantage=chain(Center(), halved))


def by_number(x, batch):
    """Depends on how groups are numbered."""
    return x * batch.group


BROKEN = Method(advantage=by_number)
'''


def tiny_model(folder: Path, *, end: str = "<end>") -> None:
    """A Llama of one layer that reads 64 single characters; it has no pad token."""
    alphabet = ["<end>", *map(chr, range(32, 127)), "\n"]
    vocabulary = {char: number for number, char in enumerate(alphabet)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=" "))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    ends = {"eos_token": end} if end else {}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **ends).save_pretrained(folder)
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
    for name, lost in (("no_config", "config.json"), ("no_tokenizer", "tokenizer")):
        shutil.copytree(folder / "model", folder / name)
        for path in (folder / name).glob(f"{lost}*"):
            path.unlink()
    (folder / "empty").mkdir()


def write_tasks(folder: Path) -> None:
    rows = [json.dumps({"prompt": f"{i} + 1 =", "answer": str(i + 1)}) for i in range(12)]
    tables = {
        "tasks": rows,
        "empty": [],
        "torn": [*rows[:2], '{"prompt": "2 + 1 ="', *rows[3:]],
        "questions": [row.replace("prompt", "question") for row in rows],
        "long": [json.dumps({"prompt": "1 + " * 20 + "1 =", "answer": "21"}), *rows],
    }
    for name, lines in tables.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def age(folder: Path) -> None:
    """Runs as an older version left them, and journals in which something is wrong."""
    for name in ("older", "odd", "torn"):
        shutil.copytree(folder / "run", folder / name)
    recipe = json.loads((folder / "older" / "recipe.json").read_text())["recipe"] | {"epochs": 1}
    mark = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
    data = {"fingerprint": mark, "recipe": recipe}
    (folder / "older" / "recipe.json").write_text(json.dumps(data))
    journal = folder / "older" / "rollouts.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    kept = [{n: x for n, x in line.items() if n not in ("parts", "failed")} for line in lines]
    journal.write_text("".join(json.dumps(line) + "\n" for line in kept))
    with (folder / "odd" / "metrics.jsonl").open("a") as file:
        file.write('{"step": [2]}\n')
    journal = folder / "torn" / "rollouts.jsonl"
    journal.write_text("{\n" + journal.read_text())


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models, tasks, rewards, recipes, and a run that has ended; `docs/bad_input.md` lists them."""
    folder = tmp_path_factory.mktemp("home")
    write_models(folder)
    write_tasks(folder)
    (folder / "recipe.py").write_text(RECIPE)
    (folder / "broken.py").write_text("from grupo.recipe import Recipe\nRECIPE = Recipe(\n")
    (folder / "needy.py").write_text("\nimport nothing_that_is_here\n")
    (folder / "rewards.py").write_text(REWARDS)
    (folder / "method.py").write_text(METHOD)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with pytest.raises(SystemExit) as end:
            main(["train", "recipe.py", "--run", "run"])
    assert not end.value.code
    for name in ("edited", "damaged"):
        shutil.copytree(folder / "run", folder / name)
    text = (folder / "edited" / "recipe.json").read_text()
    (folder / "edited" / "recipe.json").write_text(text.replace('"steps": 2', '"steps": 3'))
    age(folder)
    for path in (folder / "damaged" / "checkpoints").glob("*/weights.safetensors"):
        *whole, last = path.read_bytes()
        path.write_bytes(bytes([*whole, last ^ 1]))
    return folder


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def grupo(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Command:
    """Run a command line at home: its exit code, and what it wrote to either stream."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = 0
        try:
            main(list(words))
        except SystemExit as end:
            code = int(end.code or 0)
        return code, *capsys.readouterr()

    return run
