"""A model is shown how to go about in a world of many turns."""

import asyncio
from dataclasses import replace
from random import Random

from transformers import AutoTokenizer

from grupo.core.types import Action, Task
from grupo.envs import MultiTurn
from grupo.tasks import FromFunction
from grupo.toy import ensure_trained
from grupo.toy.multi_turn_lm import MultiTurnDemonstrations, ToyMultiTurnLM
from grupo.toy.untrained_llama import LlamaArchitecture


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


WORLD = MultiTurn(Counting, role="tool")
SMALL = ToyMultiTurnLM(
    "counts",
    WORLD,
    FromFunction(tasks),
    echo,
    ("how often?", "1 2"),
    architecture=LlamaArchitecture(hidden_size=16, intermediate_size=32, num_layers=1, num_heads=2),
    prompts_per_step=2,
    max_steps=30,
    learning_rate=1e-2,
)


def test_somebody_speaks_every_turn_in_the_policys_place():
    group = asyncio.run(MultiTurnDemonstrations(echo)(Task("k", "how often?"), WORLD, Reciting()))
    (rollout,) = group.rollouts
    assert [action.text for _, action in rollout.turns] == ["how often?", "1", "2"]
    assert (rollout.reward, rollout.source) == (1.0, "worked")


def test_it_grows_into_its_home_once_and_knows_how_a_chat_is_laid_out(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    home = ensure_trained(SMALL)
    assert home == tmp_path / "models" / "counts"
    made = (home / "model.safetensors").stat().st_mtime_ns
    assert ensure_trained(SMALL) == home
    assert (home / "model.safetensors").stat().st_mtime_ns == made
    tokenizer = AutoTokenizer.from_pretrained(home)
    asked = [{"role": "user", "content": "how often?"}]
    text = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    assert text == "user: how often?\nassistant: "
    assert tokenizer.tokenize(text) == ["user", ": ", "how ", "often", "?", "\n", "assistant", ": "]


def test_it_says_what_it_was_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    from grupo import CausalLM
    from grupo.rollouts.evaluate import run_rollouts

    policy = CausalLM(
        str(ensure_trained(replace(SMALL, max_steps=100))),
        max_new_tokens=4,
        apply_chat_template=True,
    ).build()
    (group,) = run_rollouts(policy.actor(0).with_sampling(top_k=1), WORLD, list(tasks()), 1)
    assert [action.text for _, action in group.rollouts[0].turns] == ["how often?", "1", "2"]
