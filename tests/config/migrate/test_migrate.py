"""Twenty-three scripts and configurations of other libraries become recipes."""

import tomllib
from pathlib import Path

import pytest

from grupo.algo.aggregation import ConstantLength, sequence_mean, token_mean
from grupo.algo.divergences import k2, k3_clamped
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import KL, Clip, CorrectedKL, CorrectedLoss, ImportanceWeight, IntervalMask
from grupo.algo.ratios import CappedRatio, RatioTo, product
from grupo.algo.token_level import row_sum
from grupo.catalogue.parse import parse_method
from grupo.config.migrate import migrate_file
from grupo.config.recipe_files import recipe_from_data
from grupo.recipe import Recipe
from grupo.tasks.overlong import drop
from grupo.util.errors import ConfigError

FILES = Path(__file__).parent / "files"
SOURCE = {"orchestrator.train.source"}
LONG_PROMPTS = {"data.max_prompt_length"}
SEQUENCE_MASK = ImportanceWeight(IntervalMask(0.0, 3.0), row_sum)  # TRL's default with vLLM
# file, options without counterpart, fields of the recipe
CASES = [
    ("trl_minimal.py", set(), {"policy.model": "owner/small-model", "prompts_per_step": 1}),
    ("trl_config.py", set(), {"learning_rate.start": 1e-6, "seed": 42, "tasks.config": "easy"}),
    (
        "trl_lora.py",
        set(),
        {"policy.lora.rank": 24, "policy.lora.targets": ("q_proj", "v_proj"), "save_every": 25,
         "prompts_per_step": 3, "max_steps": 150, "method.aggregation": token_mean},
    ),
    (
        "trl_vllm_dr_grpo.py",
        set(),
        {"method.aggregation": ConstantLength(1536),
         "method.loss": CorrectedLoss(Clip(0.25, 0.25), SEQUENCE_MASK) + 0.02 * CorrectedKL(),
         "policy.engine.urls": ("http://127.0.0.1:9000",), "learning_rate.fraction": 0.05,
         "method.updates.epochs": 2, "seed": 5},
    ),
    (
        "trl_gspo.py",
        set(),
        {"method.loss": parse_method("gspo(clip_low=2e-4, clip_high=5e-4)").loss,
         "prompts_per_step": 16, "method.updates.minibatches": 4},
    ),
    ("trl_parser.py", {"reward_model_path"}, {"method.sampler.group_size": 8}),
    (
        "trl_environment.py",
        {"environment_factory"},
        {"policy.max_new_tokens": 1024, "prompts_per_step": 1,
         "policy.chat_template_kwargs": {"enable_thinking": True}},
    ),
    (
        "trl_agent.py",
        {"tools"},
        {"policy.chat_template_kwargs": {"enable_thinking": False},
         "policy.max_new_tokens": 1024, "max_steps": 400, "tasks.path": "owner/genes"},
    ),
    (
        "trl_rloo.py",
        set(),
        {"method.sampler.group_size": 4, "prompts_per_step": 8, "method.updates.minibatches": 2,
         "method.aggregation": sequence_mean, "method.loss": Clip(0.1, 0.1, product),
         "learning_rate": 2e-6, "policy.max_new_tokens": 256},
    ),
    (
        "trl_async_grpo.py",
        {"fork_threshold_tokens"},
        {"method.sampler.group_size": 16, "prompts_per_step": 4, "max_staleness": 2,
         "method.loss": Clip(0.2, 0.28, RatioTo("sampler")), "policy.max_new_tokens": 2048,
         "policy.engine.urls": ("http://127.0.0.1:9100",), "policy.tokens_per_microbatch": 6000,
         "method.aggregation": token_mean, "learning_rate": 1e-6},
    ),
    (
        "verl_grpo_gsm8k.sh",
        LONG_PROMPTS,
        {"prompts_per_step": 96, "method.updates.minibatches": 4,
         "tasks.path": "~/sums/train.parquet",
         "method.loss": Clip(0.2, 0.2, CappedRatio(3.0)) + 0.002 * KL(k3_clamped),
         "overlong": drop, "evaluation.every": 3, "save_every": 15,
         "learning_rate": 2e-6, "method.sampler.group_size": 6, "optimizer.weight_decay": 0.01},
    ),
    (
        "verl_lora.sh",
        LONG_PROMPTS,
        {"prompts_per_step": 16, "policy.lora.rank": 24, "policy.lora.alpha": 12.0},
    ),
    (
        "verl_dapo.sh",
        {"reward_model.reward_manager", "reward_model.overlong_buffer.penalty_factor"},
        {"method.loss": Clip(0.2, 0.27, CappedRatio(10.0)),
         "method.filter": keep_nonzero_std, "max_steps": 90,
         "method.curriculum.max_resample_rounds": 6, "policy.max_new_tokens": 4096,
         "tasks.columns.prompt": "question", "policy.sampling.top_p": 0.98, "max_grad_norm": 0.5,
         "policy.model": "owner/seven-billion", "evaluation.attempts": 3},
    ),
    (
        "verl_gspo.sh",
        set(),
        {"method.sampler.group_size": 10, "method.updates.minibatches": 4,
         "tasks.path": "a.parquet"},
    ),
    (
        "verl_rloo.sh",
        LONG_PROMPTS,
        {"method.advantage": parse_method("rloo(kl_coef=0.004)").advantage, "prompts_per_step": 32},
    ),
    (
        "verl_reinforce.sh",
        set(),
        {"method.advantage": parse_method("reinforce_pp_baseline").advantage, "max_steps": 20,
         "method.loss": Clip(0.2, 0.2, CappedRatio(3.0)) + 0.003 * KL(k2)},
    ),
    (
        "verl_config.yaml",
        LONG_PROMPTS,
        {"method.aggregation": ConstantLength(256), "method.sampler.group_size": 9,
         "method.updates.epochs": 2, "method.loss": Clip(0.2, 0.2, CappedRatio(3.0)),
         "learning_rate.fraction": 0.1,
         "policy.sampling.temperature": 1.1, "tasks.path": "one.parquet",
         "policy.chat_template_kwargs": {"enable_thinking": False}},
    ),
    (
        "openrlhf_reinforce.sh",
        {"algo.advantage.estimator"},
        {"policy.model": "owner/thinker", "max_steps": 200, "policy.apply_chat_template": True,
         "tasks.columns.answer": "solution", "policy.tokens_per_microbatch": 9000},
    ),
    (
        "openrlhf_dapo.sh",
        {"data.max_len"},
        {"method.loss": Clip(0.2, 0.3), "method.filter": keep_nonzero_std, "max_steps": 200,
         "method.updates.minibatches": 2, "tasks.columns.prompt": "messages"},
    ),
    (
        "openrlhf_short_names.sh",
        set(),
        {"method.loss": Clip(0.2, 0.2) + 0.003 * KL(k3_clamped), "method.sampler.group_size": 8,
         "policy.max_new_tokens": 600, "learning_rate.fraction": 0.03},
    ),
    ("prime_reverse.toml", SOURCE | {"seq_len"}, {"policy.lora.rank": 4, "prompts_per_step": 8}),
    (
        "prime_wordle.toml",
        SOURCE | {"seq_len"},
        {"policy.sampling.temperature": 0.9, "max_steps": 90, "prompts_per_step": 8},
    ),
    (
        "prime_max_rl.toml",
        SOURCE,
        {"method.advantage": parse_method("max_rl").advantage, "max_staleness": 2,
         "learning_rate.fraction": 0.5, "evaluation.every": 6},
    ),
]  # fmt: skip


def recipe_of(text: str) -> Recipe:
    """The recipe of a printed file, with a reward that needs no import."""
    data = tomllib.loads(text)
    rewards = [{**reward, "fn": "ExactMatch()"} for reward in data["env"]["rewards"]]
    return recipe_from_data({**data, "env": {"rewards": rewards}})


@pytest.mark.parametrize(("name", "untranslated", "fields"), CASES, ids=[c[0] for c in CASES])
def test_file_becomes_a_recipe(name, untranslated, fields):
    migration = migrate_file(FILES / name)
    assert set(migration.untranslated) == untranslated
    assert "to be corrected" not in migration.text
    for option in untranslated:
        assert f"# * {option} = " in migration.text
    recipe = recipe_of(migration.text)
    for field, value in fields.items():
        found = recipe
        for part in field.split("."):
            found = getattr(found, part)
        assert found == value, field


def test_there_are_twenty_three_files():
    assert len(CASES) == len(list(FILES.iterdir())) == 23


def test_rewards_are_addresses_of_the_functions_of_the_script():
    rewards = {
        name: tomllib.loads(migrate_file(FILES / name).text)["env"]["rewards"]
        for name in ("trl_minimal.py", "trl_lora.py", "verl_gspo.sh", "verl_rloo.sh")
    }
    assert rewards["trl_minimal.py"][0]["fn"] == f"{FILES / 'trl_minimal.py'}:vowels"
    assert [reward["fn"] for reward in rewards["trl_lora.py"]] == [
        "trl.rewards:think_format_reward",
        "trl.rewards:accuracy_reward",
    ]
    assert rewards["verl_gspo.sh"][0]["fn"] == "score.py:score_answer"
    assert rewards["verl_rloo.sh"][0]["fn"] == "verl.utils.reward_score:default_compute_score"


def test_script_is_not_executed(tmp_path):
    marker = tmp_path / "executed"
    script = tmp_path / "grpo.py"
    script.write_text(
        f"open({str(marker)!r}, 'w')\nGRPOTrainer(model='m', args=GRPOConfig(beta=float('1')))\n"
    )
    migration = migrate_file(script)
    assert not marker.exists()
    assert "# * beta = float('1') is no constant" in migration.text


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.py", "def (", "is no Python script"),
        ("a.py", "print(1)", "makes none of GRPOConfig, RLOOConfig, AsyncGRPOConfig, GRPOTrainer"),
        ("a.sh", "echo hello", "is of no known library"),
        ("a.yaml", "a: [", "is not valid"),
        ("a.yaml", "a: 1", "is of no known library"),
        ("a.toml", "a = ", "is not valid"),
        ("a.txt", "", "is of no known library"),
    ],
)
def test_file_that_cannot_be_translated_is_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=message):
        migrate_file(tmp_path / name)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="There is no file"):
        migrate_file(tmp_path / "none.py")
