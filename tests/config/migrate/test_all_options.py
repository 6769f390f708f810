"""Every option of TRL and verl is translated, named, or known to be irrelevant."""

import json
from pathlib import Path

import pytest

from grupo.config.migrate import migrate_file, trl, verl
from grupo.config.migrate.settings import OptionValues
from grupo.config.option_hints import LIBRARIES, find_option
from tests.config.migrate.peer_files import migrate_trl, migrate_verl
from tests.config.migrate.test_migrate import recipe_of

NAMES = json.loads((Path(__file__).parent / "peer_options.json").read_text())
TRL_NAMES, VERL_NAMES = NAMES.values()
TRL, VERL = LIBRARIES[:2]
KL = {"beta": 0.04}
VLLM = {"use_vllm": True}
ADAPTIVE = {"use_adaptive_entropy": True}
# option and another value than its default, and options without which it has no effect
TRL_ALGORITHM = [
    ({"num_generations": 4}, {}),
    ({"steps_per_generation": 2}, {"num_generations": 4}),
    ({"gradient_accumulation_steps": 2}, {"loss_type": "bnpo"}),
    ({"beta": 0.04}, {}),
    ({"num_iterations": 2}, {}),
    ({"epsilon": 0.1}, {}),
    ({"delta": 2.0}, {}),
    ({"epsilon_high": 0.3}, {}),
    ({"sapo_temperature_neg": 2.0}, {"loss_type": "sapo"}),
    ({"sapo_temperature_pos": 2.0}, {"loss_type": "sapo"}),
    *(
        ({f"vespo_{name}": 1.5}, {"loss_type": "vespo"})
        for name in ("k_pos", "lambda_pos", "k_neg", "lambda_neg")
    ),
    ({"importance_sampling_level": "sequence"}, {}),
    ({"multi_objective_aggregation": "normalize_then_sum"}, {}),
    ({"scale_rewards": False}, {}),
    ({"loss_type": "grpo"}, {}),
    ({"mask_truncated_completions": True}, {}),
    ({"sync_ref_model": True}, KL),
    ({"ref_model_mixup_alpha": 0.5}, {**KL, "sync_ref_model": True}),
    ({"ref_model_sync_steps": 64}, {**KL, "sync_ref_model": True}),
    ({"top_entropy_quantile": 0.2}, {}),
    ({"entropy_coef": 0.01}, {}),
    ({"use_adaptive_entropy": True}, {}),
    *(({f"entropy_{name}": 0.5}, ADAPTIVE) for name in ("coef_min", "coef_max", "coef_delta")),
    ({"entropy_target": 0.5}, ADAPTIVE),
    ({"vllm_importance_sampling_correction": False}, VLLM),
    ({"vllm_importance_sampling_mode": "token_mask"}, VLLM),
    ({"vllm_importance_sampling_clip_max": 2.0}, VLLM),
    ({"vllm_importance_sampling_clip_max": None}, VLLM),
    ({"vllm_importance_sampling_cap": 2.0}, VLLM),
    ({"vllm_importance_sampling_clip_min": 0.5}, VLLM),
    ({"off_policy_mask_threshold": 0.5}, {}),
    ({"use_bias_correction_kl": False}, KL),
    ({"max_completion_length": 9}, {"loss_type": "dr_grpo"}),
]
VERL_ALGORITHM = [
    ({"clip_ratio_low": 0.1}, {}),
    ({"clip_ratio_high": 0.3}, {}),
    ({"clip_ratio": 0.1}, {"clip_ratio_low": "null"}),
    ({"clip_ratio_c": 5.0}, {}),
    ({"tau_pos": 2.0}, {"loss_mode": "sapo"}),
    ({"tau_neg": 2.0}, {"loss_mode": "sapo"}),
    ({"loss_mode": "gspo"}, {}),
    ({"loss_agg_mode": "token-sum"}, {}),
    ({"loss_scale_factor": 9}, {"loss_agg_mode": "seq-mean-token-sum-norm"}),
    ({"entropy_coeff": 0.1}, {}),
    ({"use_kl_loss": True}, {}),
    ({"kl_loss_coef": 0.1}, {"use_kl_loss": True}),
    ({"kl_loss_type": "k2"}, {"use_kl_loss": True}),
    ({"ppo_epochs": 2}, {}),
    ({"adv_estimator": "rloo"}, {}),
    ({"norm_adv_by_std_in_grpo": False}, {}),
    ({"lam": 0.5}, {"adv_estimator": "gae"}),
    ({"gamma": 0.5}, {"adv_estimator": "gae"}),
    ({"gamma": 0.5}, {"adv_estimator": "reinforce_plus_plus"}),
]


@pytest.mark.parametrize("name", TRL_NAMES)
def test_option_of_trl_is_known(name):
    source = OptionValues({name: "1"})
    trl.translate(source)
    assert name in source.used or find_option(name, TRL)


@pytest.mark.parametrize("name", VERL_NAMES)
def test_option_of_verl_is_known(name):
    source = OptionValues({name: "1"})
    verl.translate(source)
    assert name in source.used or find_option(name, VERL)


@pytest.mark.parametrize(("option", "others"), TRL_ALGORITHM, ids=str)
def test_option_of_trls_algorithm_changes_the_method_or_is_named(tmp_path, option, others):
    plain, changed = migrate_trl(tmp_path, others), migrate_trl(tmp_path, others | option)
    is_named = changed.untranslated != plain.untranslated
    assert is_named or recipe_of(changed.text).method != recipe_of(plain.text).method


@pytest.mark.parametrize(("option", "others"), VERL_ALGORITHM, ids=str)
def test_option_of_verls_algorithm_changes_the_method(tmp_path, option, others):
    plain, changed = migrate_verl(tmp_path, others), migrate_verl(tmp_path, others | option)
    assert recipe_of(changed.text).method != recipe_of(plain.text).method


def test_data_files_are_the_tasks(tmp_path):
    script = tmp_path / "script.py"
    for files, path in (
        ("'mine.jsonl'", "mine.jsonl"),
        ("['a.jsonl', 'b.jsonl']", "a.jsonl"),
        ("{'train': 'mine.jsonl', 'test': 'held.jsonl'}", "mine.jsonl"),
    ):
        script.write_text(
            f"data = load_dataset('json', data_files={files}, split='train')\n"
            "GRPOTrainer(model='m', args=GRPOConfig(), train_dataset=data)\n"
        )
        assert f'tasks = "{path}"\n' in migrate_file(script).text


def test_colocated_vllm_becomes_a_server_on_the_same_device(tmp_path):
    options = {"use_vllm": True, "vllm_gpu_memory_utilization": 0.25}
    migration = migrate_trl(tmp_path, options)
    engine = recipe_of(migration.text).policy.engine
    assert (engine.python, engine.gpu_memory_utilization) == ("python", 0.25)
    assert "policy.engine starts a server on the same device" in migration.text
