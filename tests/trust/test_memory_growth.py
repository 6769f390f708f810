"""Training for 2,400 steps needs less than 100 kB more memory in 1,000 steps."""

import tempfile

import pytest

from grupo.methods.rae import rae
from grupo.testing.smoke.run import echo_recipe
from grupo.training.callbacks import NullCallback
from grupo.training.start import run_training
from tests.helpers.resource_use import (
    PER_STEP,
    excessive_growth,
    resize_interned_table,
    resource_use,
)

pytestmark = pytest.mark.trust


def test_training_grows_by_less_than_100_kb_in_1000_steps(tmp_path):
    samples = []

    class Sampler(NullCallback):
        def on_step_end(self, step, metrics):
            if step % 120 == 0:
                samples.append(resource_use(step))

    resize_interned_table()
    recipe = echo_recipe(rae(), max_steps=2400).replace(prompts_per_step=4, save_every=100)
    with pytest.MonkeyPatch.context() as patch:
        (tmp_path / "tmp").mkdir()
        patch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
        run_training(recipe, tmp_path / "run", Sampler())
    assert excessive_growth(samples, PER_STEP) == {}
