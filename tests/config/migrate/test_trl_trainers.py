"""RLOOTrainer and AsyncGRPOTrainer of TRL 1.16: their updates, with numbers worked by hand."""

from dataclasses import replace
from math import exp, log

import pytest
import torch

from grupo.config.migrate import migrate_file
from grupo.core.batch import SignalDict
from grupo.testing.batches import make_batch, perturb_logp
from grupo.util.errors import ConfigError
from tests.config.migrate.test_migrate import recipe_of


@pytest.fixture
def migrated(tmp_path):
    """Returns the method for a trainer with these options, and the options without counterpart."""

    def migrate(kind, options=""):
        script = tmp_path / "script.py"
        script.write_text(f"{kind}Trainer('m', reward_funcs=[], args={kind}Config({options}))\n")
        migration = migrate_file(script)
        return recipe_of(migration.text).method, migration.untranslated

    return migrate


def rloo_batch():
    """Two groups of two answers, the first answer of each 0.5 nats more likely than before."""
    ref = [[-1.5, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0]]
    return make_batch(
        [0, 0, 1, 1], [2.0, 1.0, 0.0, 9.0], length=[2, 1, 1, 1], signals={"logp@ref": ref}
    )


def test_rloo_penalizes_the_kl_divergence_of_an_answer_in_its_reward(migrated):
    method, untranslated = migrated("RLOO", "beta=0.2")
    assert untranslated == {}
    batch = rloo_batch()
    # R_0 = 2 - 0.2 (log pi - log ref) = 2 - 0.2 x 0.5 = 1.9; the baseline is the other's reward
    expected = [1.9 - 1.0, 1.0 - 1.9, 0.0 - 9.0, 9.0 - 0.0]
    assert method.advantage(batch.reward, batch).tolist() == pytest.approx(expected)


def test_rloo_clips_rewards_and_normalizes_over_all_answers(migrated):
    method, _ = migrated("RLOO", "beta=0, reward_clip_range=(-5, 5), normalize_advantages=True")
    batch = rloo_batch()
    # 9 is clipped to 5: advantages 1, -1, -5, 5 with mean 0 and variance (1 + 1 + 25 + 25) / 3
    deviation = (52 / 3) ** 0.5 + 1e-4
    expected = [x / deviation for x in (1.0, -1.0, -5.0, 5.0)]
    assert method.advantage(batch.reward, batch).tolist() == pytest.approx(expected)


def test_rloo_clips_the_ratio_of_the_whole_answer(migrated):
    method, _ = migrated("RLOO", "epsilon=0.2, epsilon_high=0.3")
    batch = make_batch([0, 0], length=[2, 1], advantage=[1.0, -1.0])
    pi = perturb_logp(batch, [[log(1.1), log(1.3)], [log(1.2), 0.0]])
    # the products are 1.43, above 1.3, and 1.2; the loss is the mean of -1.3 x 1 and 1.2
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx((-1.3 + 1.2) / 2)


def test_rloo_has_the_defaults_of_trl(migrated):
    method, _ = migrated("RLOO")
    assert method.sampler.group_size == 2
    assert method == migrated("RLOO", "num_generations=2, beta=0.05, epsilon=0.2")[0]


def test_async_grpo_takes_the_ratio_to_the_engine(migrated):
    method, untranslated = migrated("AsyncGRPO", "epsilon_high=0.28")
    assert untranslated == {}
    batch = make_batch([0, 0], [1.0, 0.0], length=[2, 1], logp=-1.0)
    engine = SignalDict({"logp@sampler": torch.tensor([[-1.5, -1.0], [-1.1, 0.0]])})
    batch = replace(batch, signals=engine)
    # (r - mean) / (std of the population + 1e-8): 0.5 / 0.5
    batch = batch.with_advantage(method.advantage)
    assert batch.advantage[:, 0].tolist() == pytest.approx([1.0, -1.0])
    pi = perturb_logp(batch, [[0.0, 0.1], [0.0, 0.0]])
    # ratios e^0.5, clipped to 1.28, and e^0.1; with A = -1 it is e^0.1
    expected = (-1.28 - exp(0.1) + exp(0.1)) / 3
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "options", "names"),
    [
        ("AsyncGRPO", "weight_sync_steps=2", {"weight_sync_steps"}),
        ("AsyncGRPO", "gradient_accumulation_steps=4", {"gradient_accumulation_steps"}),
        ("AsyncGRPO", "fork_threshold_tokens=9", {"fork_threshold_tokens"}),
        ("RLOO", "mask_truncated_completions=True", {"mask_truncated_completions"}),
        ("RLOO", "reward_clip_range=5", {"reward_clip_range"}),
    ],
)
def test_an_option_without_counterpart_is_named(migrated, kind, options, names):
    _, untranslated = migrated(kind, options)
    assert set(untranslated) == names


def test_a_script_with_two_trainers_is_refused(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("GRPOTrainer(args=GRPOConfig())\nRLOOTrainer(args=RLOOConfig())\n")
    with pytest.raises(ConfigError, match="makes GRPOTrainer and RLOOTrainer, or their config"):
        migrate_file(script)
