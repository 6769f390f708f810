"""How often the program waits for a simulated CUDA device."""

from dataclasses import replace

import pytest
import torch

from grupo.algo.losses import Clip, Loss
from grupo.core.batch import Batch, SignalDict
from grupo.method import Method
from grupo.methods.gvpo import gvpo
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.training.update.gradients import accumulate_gradients
from grupo.training.update.signals import signals_of_all_rows
from tests.helpers import tiny_lm
from tests.helpers.fast_cases import fast_cases
from tests.helpers.simulated_cuda.host_waits import HostWaits


def make_policy(folder: str, **fields) -> CausalPolicy:
    return CausalLM(folder, device="cuda", max_new_tokens=24, **fields).build()


SLOW = pytest.mark.slow


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_lm.save_model(tmp_path_factory.mktemp("llama")))


@pytest.mark.parametrize(
    "stop_strings", [pytest.param((), marks=pytest.mark.slow), ("no such string",)]
)
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


@pytest.mark.parametrize("checkpointing", fast_cases(1, [True, False]))
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


def training_batch(policy: CausalPolicy) -> Batch:
    """Answers with advantages and with the signals that the metrics of an update read."""
    batch = tiny_lm.answer_batch(policy)
    signals = {
        "sampled": batch.mask.float(),
        "off_context": 0.0 * batch.mask,
        "logp@sampler": batch.old_logp,
    }
    advantage = torch.linspace(-1, 1, batch.mask.numel()).view(batch.mask.shape) * batch.mask
    return replace(batch, signals=SignalDict(signals), advantage=advantage)


@pytest.mark.parametrize(
    "loss", fast_cases(1, [gvpo().loss, Clip()]), ids=["coupled rows", "rows alone"]
)
def test_waits_of_an_update_do_not_depend_on_the_number_of_microbatches(loss: Loss, llama):
    counts = []
    for size in (1_000, 100):
        policy = make_policy(llama, tokens_per_microbatch=size)
        batch = training_batch(policy)
        with HostWaits() as waits:
            accumulate_gradients(policy, Method(loss=loss), batch)
        counts.append((len(list(policy.microbatches(batch))), waits.count))
        assert not waits.copy_lines, waits.copy_lines  # nor for a copy to the device
    (one, waits_of_one), (several, waits_of_several) = counts
    assert one == 1
    assert several > 3
    assert 0 < waits_of_one == waits_of_several <= 4


def test_signals_of_all_rows_are_read_with_one_wait(llama):
    policy = make_policy(llama, tokens_per_microbatch=100)
    batch = tiny_lm.answer_batch(policy)
    with HostWaits() as waits:
        signals_of_all_rows(policy, policy, batch, ["logp"])
    assert waits.count == 1, waits.lines
    assert not waits.copy_lines, waits.copy_lines
