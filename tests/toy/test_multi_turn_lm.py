"""A model is shown how to go about in a world of many turns."""

import asyncio
from dataclasses import replace
from random import Random

from transformers import AutoTokenizer

from grupo.core.types import Action, Task
from grupo.envs import ManyTurns
from grupo.tasks import FromFunction
from grupo.toy import ensure
from grupo.toy.multi_turn_lm import Apprentice, Shown
from grupo.toy.untrained_llama import Llama


class Counting:
    """Says how often it was spoken to; it is over after three times."""

    def reset(self, task):
        self.count = 0
        return task.prompt

    def step(self, text):
        self.count += 1
        return f"{self.count}", 0.0, self.count == 3


def tasks():
    yield Task("k", "how often?")


def echo(task, heard, rng):
    """Say again what was heard last."""
    return heard[-1] if isinstance(heard[-1], str) else heard[-1][-1]["content"]


class Reciting:
    """A policy that is only told what to say."""

    async def recite(self, rollout, seen, text):
        return Action((7,), (0.0,), (0,), text, sampled=False)

    def chance(self, *label):
        return Random(0)


WORLD = ManyTurns(Counting, role="tool")
SMALL = Apprentice(
    "counts",
    WORLD,
    FromFunction(tasks),
    echo,
    ("how often?", "1 2"),
    size=Llama(width=16, inner=32, layers=1, heads=2),
    batch=2,
    steps=30,
    lr=1e-2,
)


def test_somebody_speaks_every_turn_in_the_policys_place():
    group = asyncio.run(Shown(echo)(Task("k", "how often?"), WORLD, Reciting()))
    (rollout,) = group.rollouts
    assert [action.text for _, action in rollout.turns] == ["how often?", "1", "2"]
    assert (rollout.reward, rollout.source) == (1.0, "worked")


def test_it_grows_into_its_home_once_and_knows_how_a_chat_is_laid_out(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    home = ensure(SMALL)
    assert home == tmp_path / "models" / "counts"
    made = (home / "model.safetensors").stat().st_mtime_ns
    assert ensure(SMALL) == home
    assert (home / "model.safetensors").stat().st_mtime_ns == made
    tokenizer = AutoTokenizer.from_pretrained(home)
    asked = [{"role": "user", "content": "how often?"}]
    text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    assert text == "user: how often?\nassistant: "
    assert tokenizer.tokenize(text) == ["user", ": ", "how ", "often", "?", "\n", "assistant", ": "]


def test_it_says_what_it_was_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    from grupo import CausalLM
    from grupo.rollouts.evaluate import play_all

    policy = CausalLM(str(ensure(replace(SMALL, steps=100))), limit=4, chat=True).build()
    (group,) = play_all(policy.act(0).at(top_k=1), WORLD, list(tasks()), 1)
    assert [action.text for _, action in group.rollouts[0].turns] == ["how often?", "1", "2"]
