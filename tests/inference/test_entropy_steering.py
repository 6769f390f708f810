"""Steering by entropy follows the gradient of transformers' own modules, and keeps the weights."""

from math import sqrt

import pytest
import torch

from grupo.core.decoding import EntropySteering
from grupo.core.types import Rollout
from grupo.inference.base import Request, generate_all
from grupo.inference.entropy_steering import EntropySwitch, SteeredAnswer, entropy_of
from grupo.inference.read_prompt import ReadPrompt
from grupo.models.causal_lm import CausalLM
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine as run
from tests.helpers import tiny_lm
from tests.helpers.tiny_lm import ALPHABET

PROMPT = tuple(ALPHABET.index(letter) for letter in "What is 6 times 7?")
LENGTH = 6


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """A Llama in float64 with answers of at most six tokens."""
    folder = str(tiny_lm.save_model(tmp_path_factory.mktemp("llama")))
    return CausalLM(folder, dtype="float64", max_new_tokens=LENGTH).build()


def reply_of(policy, steering, key=5):
    """The reply of a new engine to one request."""
    return generate_all(policy.weight_sync.engine(), [Request(PROMPT, key, decoding=steering)])[0]


def dense_logits(policy, tokens, offset):
    """Logits behind the tokens, by transformers, with an offset (P, K*d) on the last values."""

    def add(module, inputs, values):
        moved = values.clone()
        moved[0, : len(offset)] += offset
        return moved

    with tiny_lm.dense_attention(policy) as model:
        projection = model.model.layers[-1].self_attn.v_proj
        handle = projection.register_forward_hook(add)
        try:
            return model(torch.tensor([tokens])).logits[0, -1:]
        finally:
            handle.remove()


def expected_logp(policy, tokens, steering):
    """Log-probabilities of a steered answer, with Adam written out."""
    offset = torch.zeros(len(PROMPT), 16, dtype=torch.float64)  # 2 heads of 8 values
    mean_gradient, mean_square = torch.zeros_like(offset), torch.zeros_like(offset)
    logits = dense_logits(policy, PROMPT, offset)
    average = peak = None
    updates, result = 0, []
    for i, token in enumerate(tokens):
        result.append(logits.log_softmax(-1)[0, token].item())
        before = (*PROMPT, *tokens[: i + 1])
        entropy = entropy_of(dense_logits(policy, before, offset)).item()
        average = (
            entropy
            if average is None
            else (steering.decay * average + (1 - steering.decay) * entropy)
        )
        sign = 1.0 if peak is None or average >= peak else -1.0
        peak = average if peak is None else max(peak, average)
        for _ in range(steering.steps if (i + 1) % steering.every == 0 else 0):
            moved = offset.clone().requires_grad_()
            entropy_of(dense_logits(policy, before, moved)).backward(inputs=[moved])
            gradient = -sign * moved.grad
            updates += 1
            mean_gradient = 0.9 * mean_gradient + 0.1 * gradient
            mean_square = 0.999 * mean_square + 0.001 * gradient**2
            step = mean_gradient / (1 - 0.9**updates)
            scale = mean_square.sqrt() / sqrt(1 - 0.999**updates) + 1e-8
            offset = offset - steering.learning_rate * step / scale
        logits = dense_logits(policy, before, offset)
    return result


@pytest.mark.parametrize(
    "steering",
    [
        EntropySteering(every=1, steps=1, learning_rate=0.1, decay=0.5),
        EntropySteering(every=2, steps=3, learning_rate=0.03, decay=0.0),
    ],
)
def test_a_step_follows_the_gradient_of_the_entropy(policy, steering):
    for key in range(3):
        reply = reply_of(policy, steering, key)
        expected = expected_logp(policy, reply.tokens, steering)
        assert reply.logp == pytest.approx(expected, abs=1e-5)


def test_the_moving_average_decides_the_direction():
    # means 2, 3, 2, 2.5 and 5.75; the maxima are the first, the second and the last
    switch = EntropySwitch(decay=0.5)
    assert [switch(x) for x in (2.0, 4.0, 1.0, 3.0, 9.0)] == [1.0, 1.0, -1.0, -1.0, 1.0]


@torch.no_grad()
@pytest.mark.parametrize(("direction", "sign"), [(1.0, 1), (-1.0, -1)])
def test_steps_raise_the_entropy_or_lower_it(policy, direction, sign):
    engine = policy.weight_sync.engine()
    local = engine.engine  # the engine that generates, below the one that scores
    for key in range(4):
        prompt = ReadPrompt.of(local, Request(PROMPT, key))
        entropies = []
        for steering in (
            EntropySteering(every=1, steps=1, learning_rate=1e-12),
            EntropySteering(every=1, steps=10, learning_rate=0.02),
        ):
            answer = SteeredAnswer(prompt, steering, prompt.decode_state(LENGTH))
            answer.direction = lambda entropy: direction
            answer.sample(prompt.logits)
            entropies.append(entropy_of(answer.next_logits()).item())
        assert sign * (entropies[1] - entropies[0]) > 1e-4


def test_the_weights_stay_bit_for_bit_and_have_no_gradient(policy):
    before = {name: x.clone() for name, x in policy.hf_model.state_dict().items()}
    reply_of(policy, EntropySteering(every=1, steps=4, learning_rate=0.5))
    after = policy.hf_model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(x.requires_grad and x.grad is None for x in policy.hf_model.parameters())
    assert reply_of(policy, EntropySteering()) == reply_of(policy, EntropySteering())


def test_a_learning_rate_of_nearly_nothing_is_ordinary_decoding(policy):
    for key in range(2):
        plain = generate_all(policy.weight_sync.engine(), [Request(PROMPT, key)])[0]
        steered = reply_of(policy, EntropySteering(learning_rate=1e-30), key)
        assert steered.tokens == plain.tokens
        assert steered.logp == pytest.approx(plain.logp, abs=1e-5)


def test_positions_need_not_be_rotary(tmp_path):
    policy = CausalLM(str(tiny_lm.save_model(tmp_path, "gpt2")), max_new_tokens=LENGTH).build()
    plain = generate_all(policy.weight_sync.engine(), [Request(PROMPT, 1)])[0]
    assert reply_of(policy, EntropySteering(learning_rate=1e-30), 1).tokens == plain.tokens


def test_a_gradient_step_is_counted_as_a_generated_token(policy):
    actor = policy.actor(3)
    (response,) = run(actor.decode(Rollout(), "Well?", EntropySteering(every=2, steps=3)))
    updates = (len(response.items) - 1) // 2  # none behind the last token
    assert updates > 0
    assert actor.generated_tokens == {"": len(response.items) + 3 * updates}
    assert (response.sampled, response.off_context) == (True, True)


def test_a_reply_has_the_entropy_of_each_token(policy):
    reply = reply_of(policy, EntropySteering(every=100))
    rows = [(*PROMPT, *reply.tokens[:i]) for i in range(len(reply.tokens))]
    nothing = torch.zeros(1, 16, dtype=torch.float64)
    with torch.no_grad():
        expected = [float(entropy_of(dense_logits(policy, row, nothing))) for row in rows]
    assert reply.entropy == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"every": 0}, "EntropySteering.every: 0. Allowed: 1 or more"),
        ({"steps": 0}, "EntropySteering.steps: 0. Allowed: 1 or more"),
        ({"learning_rate": 0.0}, "EntropySteering.learning_rate: 0.0. Allowed: above 0"),
        ({"learning_rate": -1.0}, "EntropySteering.learning_rate: -1.0. Allowed: above 0"),
        ({"decay": 1.0}, "EntropySteering.decay: 1.0. Allowed: 0 or more, below 1"),
    ],
)
def test_wrong_fields_are_rejected(fields, message):
    with pytest.raises(ConfigError, match=message):
        EntropySteering(**fields)
