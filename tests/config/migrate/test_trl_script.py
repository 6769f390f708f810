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


@pytest.mark.parametrize("trainer", ["SFTTrainer", "DPOTrainer"])
def test_a_script_of_another_trainer_is_refused(tmp_path, trainer):
    text = f"config = ModelConfig()\n{trainer}(model='m', args=OtherConfig())\n"
    message = f"makes none of GRPOConfig, .*AsyncGRPOTrainer, but {trainer}\\."
    with pytest.raises(ConfigError, match=message):
        migrate(tmp_path, text)
