"""How often the program waits for a simulated CUDA device."""

import pytest

from grupo.models.causal_lm import CausalLM, CausalPolicy
from tests.helpers import tiny_lm
from tests.helpers.simulated_cuda.host_waits import HostWaits


def make_policy(folder: str, **fields) -> CausalPolicy:
    return CausalLM(folder, device="cuda", max_new_tokens=24, **fields).build()


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_lm.save_model(tmp_path_factory.mktemp("llama")))


@pytest.mark.parametrize("stop_strings", [(), ("no such string",)])
def test_a_decode_step_waits_once_whatever_the_number_of_rows(stop_strings, llama):
    policy = make_policy(llama, stop_strings=stop_strings)
    counts = []
    for attempts in (2, 12):
        with HostWaits() as waits:
            answers = tiny_lm.generate(policy, attempts=attempts)
        lengths = {len(action.items) for group in answers for action in group}
        steps = max(lengths)
        evictions = sum(n for line, n in waits.lines.items() if "decode_state" in line)
        assert evictions <= len(lengths)  # rows that end in the same step are removed together
        assert waits.count == steps + evictions, waits.lines
        counts.append(steps)
    assert counts == [24, 24]


@pytest.mark.parametrize("checkpointing", [False, True])
def test_an_update_does_not_wait_before_its_loss_is_read(checkpointing, llama):
    policy = make_policy(llama, gradient_checkpointing=checkpointing)
    batch = tiny_lm.answer_batch(policy)
    with HostWaits() as waits:
        signals = policy.signals(batch, ("logp", "entropy"))
        (signals.logp.sum() + signals["entropy"].sum()).backward()
    assert waits.count == 0, waits.lines


def test_the_disagreement_of_a_group_is_computed_without_waiting(llama):
    policy = make_policy(llama)
    batch = tiny_lm.answer_batch(policy)
    with HostWaits() as waits:
        policy.signals(batch, ("disagreement",))
    assert waits.count == 0, waits.lines
