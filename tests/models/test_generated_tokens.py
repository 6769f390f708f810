"""Actors of all kinds of models count exactly the items that their engine draws."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from grupo.core.types import Rollout, Task
from grupo.inference import decode_batch, soft_thinking
from grupo.inference.sampling_params import Sampling
from grupo.inference.soft_tokens import SoftThinkingConfig
from grupo.inference.vllm import Vllm
from grupo.models.flow import Flow
from grupo.models.flow_matching.sampler import FlowSampler
from grupo.models.masked.unmask_order import ConfidenceOrder
from grupo.models.soft_thinking_lm import SoftThinkingLM
from grupo.rollouts.samplers import (
    EarlyExits,
    GroupSampler,
    ResampleUntilInformative,
    SingleStepBranching,
    SplitTree,
)
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_flow
from tests.helpers.fake_vllm import FakeServer, completion, respond_correctly
from tests.helpers.faulty_vllm import die
from tests.helpers.scripted_actor import Once

TASK = Task("k", "a red square")
RESAMPLED = ResampleUntilInformative(GroupSampler(3), 3)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Counter[str]]:
    """Patches a method, so that the number of items that a call draws is added to a counter."""

    def count(owner: Any, method: str, num_items: Callable[..., int]) -> Counter[str]:
        original = getattr(owner, method)
        counter = Counter[str]()

        def counted(*args: Any) -> Any:
            counter["items"] += num_items(*args)
            return original(*args)

        monkeypatch.setattr(owner, method, counted)
        return counter

    return count


def count(sampler: Any, policy: Any, env: Any = Once(lambda text: 0.0)) -> int:
    """The items that the actor has counted."""
    actor = policy.actor(3)
    run_coroutine(sampler(TASK, env, actor))
    return sum(actor.generated_tokens.values())


@pytest.mark.parametrize(
    "sampler",
    [RESAMPLED, SplitTree((0, 1, 3)), SplitTree((1, 2)), SingleStepBranching(2, (0, 2))],
    ids=lambda sampler: type(sampler).__name__,
)
def test_denoising_steps_of_images_are_counted(drawn, tmp_path, sampler):
    steps = drawn(FlowSampler, "_take_step", lambda self, i, requests, *args: len(requests))
    policy = Flow(tiny_flow.save_model(tmp_path / "flow"), num_steps=4, lora=None).build()
    assert count(sampler, policy, tiny_flow.ENV) == steps["items"] > 0


@pytest.mark.parametrize("sampler", [RESAMPLED, EarlyExits(3, ",", "a")], ids=["again", "exits"])
def test_tokens_of_the_local_engine_are_counted(drawn, llama, sampler):
    rows = drawn(decode_batch.DecodeBatch, "read_tokens", lambda batch: batch.num_active)
    assert count(sampler, llama.build()) == rows["items"] > 0


def test_soft_tokens_are_counted(drawn, llama):
    config = SoftThinkingConfig(max_soft_steps=3, end_token="!", top_k=4, top_p=1.0)
    items = drawn(soft_thinking._RowState, "append", lambda *args: 1)
    assert count(RESAMPLED, SoftThinkingLM(llama, config).build()) == items["items"] > 0


def test_unmasked_tokens_are_counted(drawn, bert):
    order = ConfidenceOrder(4, tokens_per_step=2)
    tokens = drawn(Sampling, "sample", lambda self, logits, noise: len(logits))
    assert count(RESAMPLED, replace(bert, order=order).build()) == tokens["items"] > 0


@pytest.fixture
def fake() -> Any:
    server = FakeServer()
    yield server
    server.stop()


@pytest.mark.parametrize("fault_at", [-1, 4])
def test_tokens_of_a_server_are_counted_once_also_when_requests_are_sent_again(
    fake, llama, fault_at
):
    policy = replace(llama, engine=Vllm((fake.url,), max_concurrency=2)).build()
    policy.sync_weights(policy.weight_sync.snapshot(), 0)
    fake.handle_completion = lambda handler, number, body: (
        die if number == fault_at else respond_correctly
    )(handler, number, body)
    actor = policy.actor(3)
    run_coroutine(RESAMPLED(TASK, Once(lambda text: 0.0), actor))
    bodies = {body["seed"]: body for body in fake.completion_bodies}
    assert len(bodies) == 9  # three groups of three
    assert (len(fake.completion_bodies) > 9) == (fault_at >= 0)
    answers = [completion(body, fake.version)["choices"][0] for body in bodies.values()]
    num_tokens = sum(len(answer["logprobs"]["tokens"]) for answer in answers)
    assert sum(actor.generated_tokens.values()) == num_tokens
    policy.weight_sync.close()


def test_scores_of_given_tokens_are_not_generated(llama):
    actor = llama.build().actor(3)

    async def score() -> None:
        forced = await actor.prefill_forced(Rollout(), "Hi", "!?")
        await actor.logprobs(Rollout().append_turn("Hi", forced))

    run_coroutine(score())
    assert sum(actor.generated_tokens.values()) == 0
