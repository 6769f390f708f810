"""Rows, tokens, model and loss together: the numbers of TRL's DPOTrainer on one batch of pairs.

`benchmarks/trl_pairs.py` recorded them.
"""

import json
from pathlib import Path

import pytest
import torch

from grupo.core.batch import SignalDict, Signals
from grupo.envs.unscored import Unscored
from grupo.method import Method
from grupo.methods.dpo import dpo
from grupo.methods.hinge import hinge
from grupo.methods.ipo import ipo
from grupo.methods.ln_dpo import ln_dpo
from grupo.methods.nca import nca
from grupo.methods.robust_dpo import robust_dpo
from grupo.models.causal_lm import CausalLM
from grupo.tasks import InMemoryTasks
from grupo.training.update.collate import collate
from grupo.util.event_loop import run_coroutine
from tests.helpers.formula_models import save_pair_of_models

RECORDED = json.loads(Path(__file__).with_name("dpo_trainer.json").read_text())
METHODS: dict[str, Method] = {
    "sigmoid": dpo(beta=0.1),
    "ipo": ipo(tau=0.1),
    "sigmoid_norm": ln_dpo(beta=5.0),
    "hinge": hinge(gamma=0.1),
    "nca_pair": nca(beta=0.1),
    "robust": robust_dpo(beta=0.1, flip_rate=0.1),
}


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    folders = save_pair_of_models(tmp_path_factory.mktemp("models"))
    return [CausalLM(folder, max_new_tokens=5).build() for folder in folders]


def loss_on(rows, method, policies):
    policy, reference = policies

    async def groups():
        actor = policy.actor(0)
        return [await method.sampler(task, Unscored(), actor) for task in tasks]

    tasks = InMemoryTasks(rows).load()
    batch = collate(run_coroutine(groups()), policy.encode)
    with torch.no_grad():
        ref = reference.signals(batch)["logp"]
        batch = batch.with_signals(SignalDict({"logp@ref": ref}))
        batch = batch.with_advantage(method.advantage)
        pi = Signals(policy.signals(batch))
        return (method.aggregation(batch) * method.loss(pi, batch)).sum().item()


def test_every_recorded_loss_is_compared():
    assert set(RECORDED["losses"]) == set(METHODS)


@pytest.mark.parametrize("loss_type", METHODS)
def test_loss_of_rows_equals_that_of_the_trainer(loss_type, policies):
    ours = loss_on(RECORDED["rows"], METHODS[loss_type], policies)
    assert ours == pytest.approx(RECORDED["losses"][loss_type]["loss"], rel=1e-5)


def test_implicit_prompts_have_the_same_loss(policies):
    rows = [
        {name: row["prompt"] + row[name] for name in ("chosen", "rejected")}
        for row in RECORDED["rows"][:2]
    ]
    explicit = loss_on(RECORDED["rows"][:2], dpo(), policies)
    assert loss_on(rows, dpo(), policies) == pytest.approx(explicit, rel=1e-6)


def test_end_token_changes_the_loss(policies):
    """The log-ratio without end tokens differs, so that the comparison covers them."""
    tasks = InMemoryTasks(RECORDED["rows"]).load()
    group = run_coroutine(dpo().sampler(tasks[0], Unscored(), policies[0].actor(0)))
    batch = collate([group], policies[0].encode)
    policy, ref = (p.signals(batch)["logp"].detach() for p in policies)
    last = batch.mask.sum(1) - 1
    ratio = (policy - ref)[torch.arange(2), last]
    assert (ratio[0] - ratio[1]).abs() > 0.01
