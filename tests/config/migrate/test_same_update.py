"""A migrated method has the update of TRL, verl and prime-rl, or what differs is named."""

from itertools import combinations, product

import pytest

from grupo.config.migrate import migrate_file
from tests.config.migrate.peer_files import (
    migrate_openrlhf,
    migrate_trl,
    migrate_verl,
    name_of,
)
from tests.config.migrate.peer_formulas import (
    prime_rl_reference,
    trl_reference,
    verl_reference,
)
from tests.config.migrate.test_migrate import recipe_of
from tests.helpers.fast_cases import fast_cases
from tests.reference.assembled.comparison import assert_equals_reference

LOSS_TYPES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo")
TRL_PRODUCT = [
    {"loss_type": loss, "importance_sampling_level": level, "scale_rewards": scale}
    | ({"beta": 0.04} if has_kl else {})
    | ({"epsilon_high": 0.28} if is_higher else {})
    for loss, level, has_kl, is_higher, scale in product(
        LOSS_TYPES,
        ("token", "sequence"),
        (False, True),
        (False, True),
        ("group", "batch", "none"),
    )
]


def fast_trl_product():
    """One of the four choices of `beta` and `epsilon_high` for each choice of the other options.

    They take turns, so that every pair of options occurs. The others run in `make test-slow`.
    """
    others = product(range(len(LOSS_TYPES)), range(2), range(3))
    for loss, level, scale in others:
        choice = (loss + 2 * level + scale) % 4
        yield TRL_PRODUCT[24 * loss + 12 * level + 3 * choice + scale]


VLLM = {"use_vllm": True, "vllm_importance_sampling_clip_max": 1.2}
TRL_CASES = [
    {},
    {"epsilon": 0.1, "epsilon_high": 0.3},
    {"loss_type": "cispo", "epsilon_high": 1.1},
    {"loss_type": "cispo", "epsilon_high": 5.0},
    {"loss_type": "luspo", "importance_sampling_level": "sequence", "epsilon": 0.05},
    {"loss_type": "grpo", "delta": 1.4},
    {"loss_type": "grpo", "importance_sampling_level": "sequence", "delta": 1.3, "beta": 0.1},
    {"loss_type": "sapo", "sapo_temperature_pos": 2.0, "sapo_temperature_neg": 3.0},
    {"loss_type": "vespo", "vespo_k_pos": 1.0, "vespo_lambda_neg": 1.5},
    {"loss_type": "grpo", "beta": 0.04, "use_bias_correction_kl": False},
    *({"loss_type": loss, "entropy_coef": 0.01} for loss in ("dapo", "bnpo", "cispo")),
    {"loss_type": "dapo", "entropy_coef": 0.02, "beta": 0.1},
    {"off_policy_mask_threshold": 0.05, "beta": 0.04, "use_vllm": True,
     "vllm_importance_sampling_correction": False},
    {**VLLM, "beta": 0.04, "loss_type": "grpo"},
    {**VLLM, "off_policy_mask_threshold": 0.05, "loss_type": "sapo"},
    *(
        {**VLLM, "vllm_importance_sampling_mode": mode, "vllm_importance_sampling_clip_min": 0.7}
        for mode in ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask")
    ),
    {"multi_objective_aggregation": "normalize_then_sum", "loss_type": "grpo"},
]  # fmt: skip
AGGREGATIONS = ("token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean")
KL_TYPES = ("k1", "kl", "abs", "k2", "mse", "k3", "low_var_kl")
VERL_CASES = [
    *({"loss_mode": m, "loss_agg_mode": a} for m, a in product(("vanilla", "gspo"), AGGREGATIONS)),
    *(
        {"loss_mode": mode, "loss_agg_mode": "seq-mean-token-mean", "use_kl_loss": True,
         "kl_loss_coef": 0.04, "kl_loss_type": kind, "entropy_coeff": 0.01}
        for mode, kind in product(("vanilla", "gspo"), KL_TYPES)
    ),
    *(
        {"loss_agg_mode": a, "use_kl_loss": True, "entropy_coeff": 0.01} for a in AGGREGATIONS
    ),
    *({"use_kl_loss": True, "kl_loss_type": kind} for kind in ("k1+", "abs+", "k3+", "k2+")),
    {"clip_ratio_low": 0.1, "clip_ratio_high": 0.28, "clip_ratio_c": 1.4},
    {"loss_agg_mode": "seq-mean-token-sum-norm"},
    {"loss_agg_mode": "seq-mean-token-sum-norm", "loss_scale_factor": 50},
    {"norm_adv_by_std_in_grpo": False},
    {"loss_mode": "sapo", "tau_pos": 2.0},
    {"loss_mode": "cispo", "clip_ratio_low": 0.3, "clip_ratio_high": 0.4, "entropy_coeff": 0.01},
    {"loss_mode": "gpg", "use_kl_loss": True},
    # examples/dppo_trainer/run_qwen30b_dppo.sh
    {"loss_mode": "dppo_tv", "bypass_mode": True, "clip_ratio": 0.15, "clip_ratio_low": 0.15,
     "clip_ratio_high": 0.15, "clip_ratio_c": 10000.0, "norm_adv_by_std_in_grpo": False,
     "loss_agg_mode": "seq-mean-token-sum-norm"},
    {"loss_mode": "dppo_kl", "bypass_mode": True, "clip_ratio": 0.05, "clip_ratio_low": 0.05,
     "clip_ratio_high": 0.05, "clip_ratio_c": 1.3},
]  # fmt: skip


@pytest.mark.parametrize(
    "options",
    fast_cases([*fast_trl_product(), *TRL_CASES], [*TRL_PRODUCT, *TRL_CASES]),
    ids=name_of,
)
def test_update_of_trl_is_kept(tmp_path, options):
    is_split = "multi_objective_aggregation" in options
    migration = migrate_trl(tmp_path, options, "[correct, short]" if is_split else "[correct]")
    assert not migration.untranslated
    assert_equals_reference(recipe_of(migration.text).method, trl_reference(options))


def test_every_pair_of_options_of_trl_is_fast():
    def pairs(cases):
        named = [[("beta", None), ("epsilon_high", None), *case.items()] for case in cases]
        return {pair for case in named for pair in combinations(dict(case).items(), 2)}

    fast = [*fast_trl_product()]
    assert pairs(fast) == pairs(TRL_PRODUCT)
    assert 4 * len(fast) == len(TRL_PRODUCT)


@pytest.mark.parametrize("options", VERL_CASES, ids=name_of)
def test_update_of_verl_is_kept(tmp_path, options):
    migration = migrate_verl(tmp_path, options)
    assert not migration.untranslated
    assert_equals_reference(recipe_of(migration.text).method, verl_reference(options))


@pytest.mark.parametrize(
    "options", [{}, {"dppo_mask_low": 0.05, "dppo_mask_high": 0.1}, {"kl_tau": 0.5}], ids=name_of
)
def test_update_of_prime_rl_is_kept(tmp_path, options):
    file = tmp_path / "rl.toml"
    values = "".join(f"{name} = {value}\n" for name, value in options.items())
    file.write_text(f"[orchestrator]\ngroup_size = 4\n[trainer.loss]\n{values}")
    migration = migrate_file(file)
    assert not migration.untranslated
    assert_equals_reference(recipe_of(migration.text).method, prime_rl_reference(options))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"loss_type": "grpo", "entropy_coef": 0.01}, "entropy_coef"),
        ({"loss_type": "dr_grpo", "entropy_coef": 0.01}, "entropy_coef"),
        ({"delta": 1.1}, "delta"),
        ({"steps_per_generation": 4}, "loss_type"),
        ({"loss_type": "bnpo", "gradient_accumulation_steps": 4}, "loss_type"),
        ({"loss_type": "new"}, "loss_type"),
        ({"importance_sampling_level": "word"}, "importance_sampling_level"),
        ({"mask_truncated_completions": True}, "mask_truncated_completions"),
        ({"use_adaptive_entropy": True}, "use_adaptive_entropy"),
        ({"top_entropy_quantile": 0.2}, "top_entropy_quantile"),
        ({"loss_type": "vespo", "use_vllm": True}, "vllm_importance_sampling_correction"),
        (
            {"sync_ref_model": True, "ref_model_sync_steps": 5, "num_iterations": 2},
            "ref_model_sync_steps",
        ),
    ],
)
def test_option_of_trl_without_equal_is_named(tmp_path, options, named):
    migration = migrate_trl(tmp_path, {"num_generations": 2, **options})
    assert named in migration.untranslated
    assert f"# * {named} = " in migration.text


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"loss_mode": "gspo", "use_kl_loss": True}, "kl_loss_coef"),
        ({"loss_mode": "sapo", "entropy_coeff": 0.1}, "entropy_coeff"),
        ({"clip_ratio_c": 1.1}, "clip_ratio_c"),
        ({"loss_mode": "clip_cov"}, "policy_loss.loss_mode"),
        ({"loss_mode": "dppo_tv"}, "policy_loss.loss_mode"),
        ({"loss_mode": "dro"}, "policy_loss.loss_mode"),
        ({"kl_loss_type": "full", "use_kl_loss": True}, "kl_loss_type"),
        ({"loss_agg_mode": "word-mean"}, "loss_agg_mode"),
    ],
)
def test_option_of_verl_without_equal_is_named(tmp_path, options, named):
    assert f"actor_rollout_ref.actor.{named}" in migrate_verl(tmp_path, options).untranslated


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"adv_estimator": "gdpo"}, "adv_estimator"),
        ({"adv_estimator": "new"}, "adv_estimator"),
        ({"adv_estimator": "optimal_token_baseline", "multi_turn.enable": True}, "adv_estimator"),
        ({"use_kl_in_reward": True, "kl_penalty": "k2"}, "kl_penalty"),
    ],
)
def test_advantage_of_verl_without_equal_is_named(tmp_path, options, named):
    assert f"algorithm.{named}" in migrate_verl(tmp_path, options).untranslated


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"algo.advantage.estimator": "gae"}, "algo.advantage.estimator"),
        ({"algo.advantage.estimator": "flash_reinforce"}, "algo.advantage.estimator"),
        ({"algo.advantage.estimator": "new"}, "algo.advantage.estimator"),
        (
            {"algo.advantage.estimator": "reinforce", "algo.advantage.no_std_norm": True},
            "algo.advantage.no_std_norm",
        ),
        ({"algo.kl.estimator": "k3"}, "algo.kl.estimator"),
        ({"algo.kl.use_loss": True, "algo.kl.estimator": "k4"}, "algo.kl.estimator"),
        (
            {"algo.kl.use_loss": True, "algo.kl.unbiased_gradient": True},
            "algo.kl.unbiased_gradient",
        ),
        ({"actor.policy_loss_type": "gspo", "algo.kl.use_loss": True}, "algo.kl.init_coef"),
        (
            {"actor.loss_agg_mode": "seq-mean-token-mean", "actor.entropy_coef": 0.1},
            "actor.entropy_coef",
        ),
        ({"actor.policy_loss_type": "new"}, "actor.policy_loss_type"),
        ({"actor.loss_agg_mode": "new"}, "actor.loss_agg_mode"),
        ({"actor.dual_clip": 1.1}, "actor.dual_clip"),
        ({"actor.eps_clip_low_high": 0.3}, "actor.eps_clip_low_high"),
        ({"algo.advantage.is_correction_level": "seq"}, "algo.advantage.is_correction_level"),
        (
            {"algo.dynamic_filtering_enable": True, "algo.dynamic_filtering_range": [0.1, 0.9]},
            "algo.dynamic_filtering_range",
        ),
    ],
)
def test_option_of_openrlhf_without_equal_is_named(tmp_path, options, named):
    options = {"algo.advantage.estimator": "group_norm", **options}
    migration = migrate_openrlhf(tmp_path, options)
    assert named in migration.untranslated
    recipe_of(migration.text)  # the nearest components make a recipe


def test_advantages_of_verls_ppo_have_its_numbers(tmp_path):
    default = migrate_verl(tmp_path, {"adv_estimator": "gae"})
    assert "algorithm.adv_estimator" in default.untranslated
    assert recipe_of(default.text).method.advantage.gae_lambda == 1.0
    given = migrate_verl(tmp_path, {"adv_estimator": "gae", "lam": 0.9, "gamma": 0.99})
    advantage = recipe_of(given.text).method.advantage
    assert (advantage.gae_lambda, advantage.gamma) == (0.9, 0.99)
