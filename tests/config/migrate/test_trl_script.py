"""Scripts of TRL as people write them: argparse, keyword dictionaries, several splits."""

from pathlib import Path

import pytest

from grupo.config.migrate import migrate_file
from grupo.util.errors import ConfigError
from tests.config.migrate.test_migrate import recipe_of


def migrate(tmp_path: Path, text: str):
    """The translation of a script."""
    script = tmp_path / "script.py"
    script.write_text(text)
    return migrate_file(script)


def test_defaults_of_argparse_are_the_values(tmp_path):
    migration = migrate(
        tmp_path,
        "parser.add_argument('--num-generations', type=int, default=6)\n"
        "parser.add_argument('--model')\nargs = parser.parse_args()\n"
        "GRPOTrainer(model=args.model, args=GRPOConfig(num_generations=args.num_generations))\n",
    )
    assert recipe_of(migration.text).method.sampler.group_size == 6


def test_a_dictionary_of_keywords_is_named_in_the_remarks(tmp_path):
    migration = migrate(
        tmp_path,
        "GRPOTrainer(model='m', args=GRPOConfig(num_generations=4, **options), **more)\n",
    )
    assert "**options was not read" in migration.text
    assert not any(name in ("None", "more") for name in migration.untranslated)


def test_of_several_splits_the_first_is_trained_on(tmp_path):
    migration = migrate(
        tmp_path,
        "rows, held_out = load_dataset('owner/rows', split=['train[:5%]', 'test[:5%]'])\n"
        "GRPOTrainer(model='m', args=GRPOConfig(num_generations=4))\n",
    )
    assert recipe_of(migration.text).tasks.split == "train[:5%]"
    assert "of the splits ['train[:5%]', 'test[:5%]'] the first was taken" in migration.text


def test_fields_that_are_set_afterwards_replace_those_of_the_call(tmp_path):
    migration = migrate(
        tmp_path,
        "settings = GRPOConfig(num_generations=4, epsilon=0.1)\nother = Thing()\n"
        "settings.num_generations = 6\nother.epsilon = 0.3\nsettings.beta = noise()\n"
        "GRPOTrainer(model='m', args=settings)\n",
    )
    recipe = recipe_of(migration.text)
    assert recipe.method.sampler.group_size == 6
    assert recipe.method.loss.clip_low == 0.1
    assert "beta = noise() is no constant" in migration.text


@pytest.mark.parametrize(("changes", "named"), [(".map(f).filter(g)", "map and filter"), ("", "")])
def test_changes_of_rows_are_named(tmp_path, changes, named):
    migration = migrate(
        tmp_path,
        f"rows = load_dataset('owner/rows'){changes}\n"
        "GRPOTrainer(model='m', train_dataset=rows, args=GRPOConfig(num_generations=4))\n",
    )
    remark = f"the script changes its rows by {named}, which is not executed"
    assert (remark in migration.text) == bool(named)
    assert recipe_of(migration.text).tasks.path == "owner/rows"


@pytest.mark.parametrize(
    ("trainer", "named"),
    [
        ("DPOTrainer", "DPOTrainer: `grupo methods dpo` describes grupo's method"),
        ("SFTTrainer", "SFTTrainer: `grupo methods sft` describes grupo's method"),
        ("OnlineDPOTrainer", "OnlineDPOTrainer"),
    ],
)
def test_a_script_of_another_trainer_is_refused_with_the_nearest_method(tmp_path, trainer, named):
    text = (
        f"config = ModelConfig()\n{trainer}(model='m', args=OtherConfig(), peft_config="
        "LoraConfig(r=32, target_modules='all-linear'))\n"
    )
    message = f"makes none of GRPOConfig, .*AsyncGRPOTrainer, but {named}\\."
    with pytest.raises(ConfigError, match=message):
        migrate(tmp_path, text)


VISION = """
parser = TrlParser((ScriptArguments, GRPOConfig, ModelConfig))
script_args, training_args, model_args = parser.parse_args_and_config()
training_args.model_init_kwargs = dict(revision="a1b2", dtype=torch.bfloat16)
training_args.model_init_kwargs["quantization_config"] = get_quantization_config(model_args)
training_args.chat_template_kwargs["enable_thinking"] = False
rows = load_dataset("owner/pictures", split="train").train_test_split(test_size=100)
rows = rows.filter(lambda row: row["image"].size[0] < 512)
GRPOTrainer(
    model="owner/small-VL", args=training_args, reward_funcs=think_format_reward,
    train_dataset=rows["train"], eval_dataset=rows["test"],
    peft_config=get_peft_config(model_args),
)
"""


def test_a_script_with_pictures_and_command_line_names_all_that_is_not_read(tmp_path):
    migration = migrate(tmp_path, VISION)
    for remark in (
        "TrlParser takes options from the command line, which are not in the script",
        "peft_config = get_peft_config(model_args) is no LoraConfig(…): set policy.lora",
        "eval_dataset = rows['test'] is not read: set eval_tasks",
        "the script changes its rows by filter and train_test_split, which is not executed",
        'the script names pictures: policy.type = "VisionLM" reads those of the rows',
        "training_args.chat_template_kwargs['enable_thinking'] = False was not read",
    ):
        assert remark in migration.text
    assert "'a1b2': download the revision" in migration.untranslated["model_revision"]
    assert "4 bits" in migration.untranslated["quantization_config"]
    assert recipe_of(migration.text).policy.model == "owner/small-VL"


ONLINE = """
NAME = "owner/small-model"
tokenizer = AutoTokenizer.from_pretrained(NAME)
model = AutoModelForCausalLM.from_pretrained(NAME, device_map="auto")
model = get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj"]))
train = load_dataset("owner/rows", split="train")
test = load_dataset("owner/others", split="test")
config = RLOOConfig(num_generations=4, report_to=["tensorboard"], reward_weights=[0.2, 0.8, 0.5])
RLOOTrainer(
    model=model, processing_class=tokenizer, args=config, train_dataset=train,
    reward_funcs=[lambda completions, **_: [0.0], accuracy_reward, scorer],
)
"""


def test_a_model_that_the_script_loads_is_the_policy(tmp_path):
    recipe = recipe_of(migrate(tmp_path, ONLINE).text)
    assert recipe.policy.model == "owner/small-model"
    assert recipe.policy.lora.rank == 8


def test_rewards_that_are_no_functions_take_no_weight_from_others(tmp_path):
    migration = migrate(tmp_path, "from trl.rewards import accuracy_reward\n" + ONLINE)
    (term,) = recipe_of(migration.text).env.rewards
    assert (term.name, term.weight) == ("accuracy_reward", 0.8)
    reason = migration.untranslated["reward_model_path"]
    assert "lambda completions" in reason
    assert "scorer" in reason


def test_further_data_sets_and_the_logger_are_named(tmp_path):
    text = migrate(tmp_path, ONLINE).text
    assert "of 2 data sets the first was taken, without load_dataset('owner/others'" in text
    assert "Options of grupo train: --tensorboard" in text
