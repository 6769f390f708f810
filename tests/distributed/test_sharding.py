"""Weights that ranks divide by FSDP2 are trained to the same numbers as whole ones."""

import pytest
import torch
from safetensors.torch import load_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from grupo.toy.tokenizers import phrase_tokenizer
from tests.distributed.conftest import Written, largest_difference
from tests.distributed.test_invariance import same_number, same_values

pytestmark = pytest.mark.slow
FSDP2 = {"policy.sharding": "FSDP2()"}
RECIPES = ("grpo", "lora", "epochs", "aux models", "lora aux models", "ema", "async")
CHANGES = {
    "clipped gradients": {"optimizer": "SGD(momentum=0.9)", "max_grad_norm": "0.01"},
    "many micro-batches": {"policy.tokens_per_microbatch": "12"},
    "gradient checkpointing": {"policy.gradient_checkpointing": "True"},
    "gathered once": {"policy.sharding": "FSDP2(reshard_after_forward=False)"},
}
MODELS = ("untied", "padded")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Models of three layers without tied embeddings, and without packed attention."""
    folder = tmp_path_factory.mktemp("models")
    tokenizer = phrase_tokenizer([])
    size = {"vocab_size": len(tokenizer), "eos_token_id": 0, "bos_token_id": None}
    torch.manual_seed(3)
    llama = LlamaConfig(
        **size,
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=3,
        num_attention_heads=2,
        max_position_embeddings=32,
        tie_word_embeddings=False,
        attention_bias=True,
        initializer_range=0.3,
    )
    gpt2 = GPT2Config(**size, n_embd=24, n_layer=3, n_head=2, n_positions=32, initializer_range=0.3)
    for name, model in zip(MODELS, (LlamaForCausalLM(llama), GPT2LMHeadModel(gpt2)), strict=True):
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return folder


def trained_whole_and_sharded(rank_processes, recipe, label="", **overrides):
    """A run of one process, and one of two ranks with sharded weights."""
    whole = rank_processes.trained(
        recipe,
        1,
        f"{recipe} {label} whole",
        overrides={**overrides, "policy.sharding": "None"},
        kernels=False,
    )
    sharded = rank_processes.trained(
        recipe, 2, f"{recipe} {label} sharded", overrides={**FSDP2, **overrides}, kernels=False
    )
    return whole, sharded


def assert_same_training(sharded, whole):
    for journal in ("rollouts", "responses", "scores"):
        assert same_values(getattr(sharded, journal), getattr(whole, journal)), journal
    assert largest_difference(sharded.weights, whole.weights) < 1e-10
    for metrics, expected in zip(sharded.metrics, whole.metrics, strict=True):
        assert metrics.keys() == expected.keys()
        # of the gradients' norm, which Adam's weights hardly depend on
        assert same_number(metrics["grad_norm"], expected["grad_norm"], 1e-12)
        for name in metrics:
            if not name.startswith("sampler_mismatch/"):  # rounding of float32, and its largest
                assert same_number(metrics[name], expected[name], 1e-5), name


@pytest.mark.parametrize("recipe", RECIPES)
def test_sharded_training_equals_that_of_one_process(rank_processes, recipe):
    whole, sharded = trained_whole_and_sharded(rank_processes, recipe)
    assert_same_training(sharded, whole)


@pytest.mark.parametrize("change", CHANGES)
def test_sharded_training_with_other_options_equals_that_of_one_process(rank_processes, change):
    whole, sharded = trained_whole_and_sharded(rank_processes, "kl", change, **CHANGES[change])
    assert_same_training(sharded, whole)


@pytest.mark.parametrize("model", MODELS)
def test_sharded_models_of_several_layers_equal_whole_ones(rank_processes, models, model):
    path = {"policy.model": repr(str(models / model))}
    assert_same_training(*trained_whole_and_sharded(rank_processes, "grpo", model, **path)[::-1])


def test_a_rank_without_rows_of_an_adapter_trains_the_others(rank_processes):
    whole, _ = trained_whole_and_sharded(rank_processes, "lora")
    sharded = rank_processes.trained("lora", 3, "lora of 3", overrides=FSDP2, kernels=False)
    assert_same_training(sharded, whole)  # adapters of rank 2 on 3 ranks


def test_runs_with_sharded_weights_have_the_same_bits_again(rank_processes):
    names = ("first", "second")
    first, second = (
        rank_processes.trained("kl", 2, f"kl sharded {n}", overrides=FSDP2) for n in names
    )
    assert first.rollouts == second.rollouts
    assert first.metrics == second.metrics
    assert largest_difference(first.weights, second.weights) == 0


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_sharded_run_is_resumed_at_any_number_of_ranks(rank_processes, tmp_path, ranks):
    run = tmp_path / "run"
    options = {"overrides": FSDP2, "kernels": False}
    rank_processes(
        "train", run, 2, recipe="ema", at="step/updated:8", signalled=0, patience=3, **options
    )
    results = rank_processes("resume", run, ranks, kernels=False)
    assert [result["error"] for result in results] == [""] * ranks
    whole, sharded = trained_whole_and_sharded(rank_processes, "ema")
    assert_same_training(Written.of(run), whole)
    if ranks == 2:
        assert largest_difference(Written.of(run).weights, sharded.weights) == 0


def test_a_sharded_checkpoint_has_the_files_of_a_whole_one(rank_processes):
    trained_whole_and_sharded(rank_processes, "ema")
    newest = {
        name: max((rank_processes.root / f"ema  {name}" / "checkpoints").glob("step-*"))
        for name in ("whole", "sharded")
    }
    for file in ("weights", "optimizer", "ema"):
        whole, sharded = (
            load_file(newest[name] / f"{file}.safetensors") for name in ("whole", "sharded")
        )
        assert {name: x.shape for name, x in sharded.items()} == {
            name: x.shape for name, x in whole.items()
        }
        assert largest_difference(sharded, whole) < 1e-10


@pytest.mark.parametrize("recipe", ["grpo", "lora"])
def test_bfloat16_weights_are_gathered_and_float32_ones_updated(rank_processes, recipe):
    narrow = {"policy.dtype": "bfloat16", "max_steps": "1"}
    whole, sharded = trained_whole_and_sharded(
        rank_processes,
        recipe,
        "bfloat16",
        **narrow,
        **{"policy.sharding": "FSDP2(param_dtype='bfloat16')"},
    )
    assert {x.dtype for x in sharded.weights.values()} == {torch.float32}
    assert largest_difference(sharded.weights, whole.weights) < 0.05
    assert sharded.metrics[0]["sampler_mismatch/logp_diff_mean"] < 1e-2


@pytest.mark.parametrize("point", ["step/advantages_computed:2", "save/weights/written:1"])
def test_a_rank_that_is_killed_while_others_gather_weights_is_named(
    rank_processes, tmp_path, point
):
    rank = 0 if point.startswith("save/") else 1
    results = rank_processes(
        "train",
        tmp_path / "run",
        2,
        recipe="kl",
        at=point,
        signalled=rank,
        patience=3,
        overrides=FSDP2,
    )
    assert results[rank]["signal"] == 9
    message = results[1 - rank]["error"]
    named = "which is rank 0 or the launcher" if rank == 0 else "RankLostError: rank 1 (host "
    assert named in message
    assert results[1 - rank]["seconds"] < 15


def test_a_sharded_rank_without_memory_ends_the_run_with_advice(rank_processes, tmp_path):
    results = rank_processes(
        "train",
        tmp_path / "run",
        2,
        recipe="kl",
        without_memory=1,
        patience=3,
        overrides={**FSDP2, **CHANGES["many micro-batches"]},
    )
    assert "RankLostError: rank 1 (host " in results[0]["error"]
    assert "ShardedOutOfMemoryError: Rank 1 ran out of memory." in results[1]["error"]
    assert "a smaller policy.tokens_per_microbatch" in results[1]["error"]
