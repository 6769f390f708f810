"""verl's V1 and fully asynchronous trainers, its reward sections, and scripts with branches."""

import json
from pathlib import Path

import pytest

from grupo.config.migrate import migrate_file
from grupo.config.migrate.settings import OptionValues
from grupo.config.migrate.shell import read_hydra_arguments
from grupo.config.option_hints import explain_option
from grupo.util.errors import ConfigError
from tests.config.migrate.test_migrate import recipe_of

TRAINER_NAMES = json.loads((Path(__file__).parent / "verl_trainer_options.json").read_text())
REQUIRED = (
    "trainer.total_training_steps=5 actor_rollout_ref.model.path=owner/small"
    " algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=4"
)


def migrate(tmp_path: Path, arguments: str):
    """The translation of a command line."""
    script = tmp_path / "run.sh"
    script.write_text(f"python3 -m verl.trainer.main_ppo {REQUIRED} {arguments}\n")
    return migrate_file(script)


@pytest.mark.parametrize("name", TRAINER_NAMES)
def test_option_is_known(name):
    assert explain_option(name)


@pytest.mark.parametrize(
    ("arguments", "staleness"),
    [
        ("trainer.use_v1=True", 0),
        ("trainer.v1.trainer_mode=sync trainer.v1.sampler.max_off_policy_threshold=4", 0),
        ("trainer.v1.trainer_mode=colocate_async", 8),
        (
            "trainer.v1.trainer_mode=separate_async trainer.v1.sampler.max_off_policy_threshold=4",
            4,
        ),
    ],
)
def test_asynchronous_modes_have_their_staleness(tmp_path, arguments, staleness):
    migration = migrate(tmp_path, arguments)
    assert recipe_of(migration.text).max_staleness == staleness
    assert migration.untranslated == {}


FULLY_ASYNC = (
    "data.train_batch_size=0 data.gen_batch_size=1 actor_rollout_ref.actor.ppo_mini_batch_size=32"
    " rollout.total_rollout_steps=25600 async_training.staleness_threshold=1.5"
    " async_training.trigger_parameter_sync_step=4 async_training.require_batches=2"
    " async_training.partial_rollout=True rollout.nnodes=2"
    " actor_rollout_ref.actor.optim.lr_warmup_steps=10"
)


def test_a_step_of_the_fully_asynchronous_trainer_lies_between_two_syncs(tmp_path):
    recipe = recipe_of(migrate(tmp_path, FULLY_ASYNC).text)
    assert recipe.prompts_per_step == 4 * 2 * 32
    assert recipe.method.updates.minibatches == 4 * 2
    assert recipe.max_steps == 25600 / (4 * 2 * 32)
    assert recipe.max_staleness == 2
    assert recipe.learning_rate.fraction == 10 / 100


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("data.train_batch_size=0", "data.train_batch_size"),
        (
            f"{FULLY_ASYNC} actor_rollout_ref.actor.ppo_mini_batch_size=0",
            "actor_rollout_ref.actor.ppo_mini_batch_size",
        ),
    ],
)
def test_a_step_without_prompts_is_refused_by_name(tmp_path, arguments, name):
    with pytest.raises(ConfigError, match=f"^{name}: 0. Allowed: 1 or more.$"):
        migrate(tmp_path, arguments)


def test_what_grupo_does_with_old_rollouts_is_said(tmp_path):
    name = "trainer.v1.sampler.max_off_policy_strategy"
    migration = migrate(tmp_path, f"trainer.v1.trainer_mode=colocate_async {name}=drop")
    assert migration.untranslated == {
        name: "'drop': no group is dropped: generation waits for the update"
    }


@pytest.mark.parametrize("section", ["", "reward."])
def test_the_reward_function_is_read_in_the_old_and_the_new_section(tmp_path, section):
    place = f"{section}custom_reward_function"
    migration = migrate(tmp_path, f"{place}.path=mine.py {place}.name=score")
    assert 'fn = "mine.py:score"' in migration.text


@pytest.mark.parametrize("section", ["reward", "reward_model"])
def test_the_overlong_buffer_is_read_in_every_section(tmp_path, section):
    place = f"{section}.reward_kwargs.overlong_buffer_cfg"
    plain = recipe_of(migrate(tmp_path, "").text)
    changed = recipe_of(migrate(tmp_path, f"+{place}.enable=True +{place}.len=32").text)
    assert "OverlongPenalty(max_length=512, overlong_buffer=32)" in repr(changed.method.advantage)
    assert "OverlongPenalty" not in repr(plain.method.advantage)


def test_adapters_of_megatron_have_their_own_default(tmp_path):
    recipe = recipe_of(migrate(tmp_path, "actor_rollout_ref.model.lora.rank=8").text)
    assert (recipe.policy.lora.rank, recipe.policy.lora.alpha) == (8, 32.0)


def test_a_branch_changes_nothing_that_is_set_outside():
    source = read_hydra_arguments(
        "size=64\nempty=${EMPTY:-}\n"
        'case "$DEVICE" in\n'
        "    gpu)\n        empty=2\n"
        "        if [ 1 ]; then\n            empty=3\n        fi\n        ;;\n"
        "    npu) \n        size=16\n        EXTRA+=(\n            algorithm.gamma=0.5\n"
        "            algorithm.lam=0.9\n        )\n        ;;\n"
        "esac\n"
        "algorithm.lam=1.0 data.train_batch_size=$size algorithm.other=$empty\n"
    )
    assert source.values == {
        "algorithm.lam": 1.0,
        "data.train_batch_size": 64,
        "algorithm.other": 2,
        "algorithm.gamma": 0.5,
    }
    assert source.remarks == ["set in a branch of the script, if or case: algorithm.gamma"]


def test_defaults_of_variables_are_read():
    source = read_hydra_arguments(
        "SIZE=${SIZE:-}\nFILE=${FILE:-$HOME/a.parquet}\nRUN=${RUN:-${HOME}/${NAME:-first}}\n"
        "data.train_batch_size=${SIZE:-512} data.train_files=$FILE trainer.default_local_dir=$RUN\n"
    )
    assert source.values == {
        "data.train_batch_size": 512,
        "data.train_files": "~/a.parquet",
        "trainer.default_local_dir": "~/first",
    }


def test_the_first_option_that_is_set_counts():
    source = OptionValues({"b": 2, "c": 3})
    assert source.first("a", "b", "c") == 2
    assert source.first("x", "y") is None
    assert {"a", "b", "x"} <= source.used
