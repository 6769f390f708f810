"""The toy language model that is trained on demonstrations of several turns."""

from dataclasses import replace
from random import Random

import pytest
from transformers import AutoTokenizer

from grupo.core.types import Response, Task
from grupo.envs import MultiTurn
from grupo.tasks import FromFunction
from grupo.toy import ensure_trained
from grupo.toy.multi_turn_lm import MultiTurnDemonstrations, ToyMultiTurnLM
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.util.event_loop import run_coroutine


class CountingGame:
    """Observes the number of steps; done after three."""

    def reset(self, task):
        self.count = 0
        return task.prompt

    def step(self, text):
        self.count += 1
        return f"{self.count}", 0.0, self.count == 3


def tasks():
    yield Task("k", "how often?")


def echo(task, observations, rng):
    """Repeat the last observation."""
    last = observations[-1]
    return last if isinstance(last, str) else last[-1]["content"]


class UnsampledActor:
    """An actor that does not sample."""

    async def append_unsampled(self, rollout, observation, text):
        return Response((7,), (0.0,), (0,), text, sampled=False)

    def rng(self, *label):
        return Random(0)


ENV = MultiTurn(CountingGame, role="tool")
SMALL = ToyMultiTurnLM(
    "counts",
    ENV,
    FromFunction(tasks),
    echo,
    ("how often?", "1 2"),
    architecture=LlamaArchitecture(hidden_size=16, intermediate_size=32, num_layers=1, num_heads=2),
    prompts_per_step=2,
    max_steps=30,
    learning_rate=1e-2,
)


def test_the_demonstrator_answers_every_turn():
    group = run_coroutine(
        MultiTurnDemonstrations(echo)(Task("k", "how often?"), ENV.open(), UnsampledActor())
    )
    (rollout,) = group.rollouts
    assert [response.text for _, response in rollout.turns] == ["how often?", "1", "2"]
    assert (rollout.reward, rollout.source) == (1.0, "demonstration")


def test_it_is_trained_once_and_its_tokenizer_has_a_chat_template(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    folder = ensure_trained(SMALL)
    assert folder.parent == tmp_path / "models"
    assert folder.name.startswith("counts-")
    mtime = (folder / "model.safetensors").stat().st_mtime_ns
    assert ensure_trained(SMALL) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == mtime
    tokenizer = AutoTokenizer.from_pretrained(folder)
    chat = [{"role": "user", "content": "how often?"}]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert text == "user: how often?\nassistant: "
    assert tokenizer.tokenize(text) == ["user", ": ", "how ", "often", "?", "\n", "assistant", ": "]


@pytest.mark.slow
def test_it_reproduces_the_demonstrations(tmp_path, monkeypatch):
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path))
    from grupo import CausalLM
    from grupo.rollouts.evaluate import run_rollouts

    policy = CausalLM(
        str(ensure_trained(replace(SMALL, max_steps=100))),
        max_new_tokens=4,
        apply_chat_template=True,
    ).build()
    (group,) = run_rollouts(policy.actor(0).with_sampling(top_k=1), ENV, list(tasks()), 1)
    assert [response.text for _, response in group.rollouts[0].turns] == ["how often?", "1", "2"]
