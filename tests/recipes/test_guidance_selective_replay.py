"""The arms of the comparison of replay, and the shares of trained rollouts."""

from types import SimpleNamespace

from grupo.algo.replay_rules import FillFromBuffer, no_replay
from grupo.evidence.claims.hard_sums import steps_for_tokens
from grupo.models.causal_lm import CausalLM
from grupo.recipe import EarlyStopping
from grupo.testing.batches import make_batch
from grupo.toy.digit_sums_lm import ToyDigitSumsLM
from grupo.training.learner import Learner
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FILE = load_module_file(ROOT / "recipes" / "guidance" / "selective_replay.py")


def step(advantage, drawn):
    batch = make_batch([0] * len(advantage), advantage=advantage)
    return SimpleNamespace(batch=batch, metrics={"replay/drawn": drawn})


def test_shares_are_those_of_all_trained_rollouts():
    """3 of 8 rollouts have an advantage, and 2 of 8 were drawn."""
    shares = FILE.trained_shares(
        [step([0.0, 1.0], 0.0), step([0.0, -1.0, 0.5, 0.0, 0.0, 0.0], 2.0)]
    )
    assert shares == {"with_advantage": 3 / 8, "replayed": 2 / 8, "steps": 2.0}


def test_the_replay_is_all_that_tells_an_arm_from_its_control():
    methods = FILE.METHODS
    for arm, control in (
        ("Skywork R1V2", "GRPO"),
        ("GRPO, SSR's replay", "GRPO"),
        ("SSR", "SSR, no replay"),
    ):
        assert isinstance(methods[arm].replay, FillFromBuffer)
        assert methods[arm].replace(replay=no_replay) == methods[control]


def test_two_steps_of_an_untrained_model_have_nothing_to_replay(tmp_path):
    ToyDigitSumsLM(hidden_size=16, num_layers=1).save_untrained(tmp_path)
    recipe = FILE.RECIPE.replace(
        policy=CausalLM(str(tmp_path), max_new_tokens=8),
        prompts_per_step=4,
        early_stopping=EarlyStopping(max_tokens=4 * 8 * 8 + 1),
    )
    steps = list(steps_for_tokens(Learner(recipe)))
    assert FILE.trained_shares(steps) == {"with_advantage": 0.0, "replayed": 0.0, "steps": 2.0}
