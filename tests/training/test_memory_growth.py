"""Memory and other resources do not grow with the number of steps; planted leaks are detected."""

import gc
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from statistics import median
from threading import Event, Thread

import pytest

from grupo.methods.rae import rae
from grupo.testing.smoke.run import echo_recipe
from grupo.training.learner import Learner
from tests.helpers.resource_use import (
    PER_STEP,
    excessive_growth,
    growth,
    heap_kb,
    resize_interned_table,
    resource_use,
)

MAX_KB_PER_STEP = 1.0
WARMUP_STEPS = 100  # until then caches grow by up to 2 kB per step


@pytest.fixture(scope="module")
def learner():
    """A learner after the warm-up of a method that reads the history."""
    result = Learner(echo_recipe(rae(), max_steps=1000).replace(prompts_per_step=1))
    for _ in range(WARMUP_STEPS):
        result.step()
    resize_interned_table()
    gc.collect()
    gc.freeze()  # collections then need not visit what earlier tests left
    yield result
    gc.unfreeze()


def kb_per_step(learner: Learner, steps: int, leak=lambda: None) -> float:
    """The growth of the heap per step: the median of three measurements of so many steps.

    Earlier tests of the process may still free some of their memory during one of them.
    """

    def measure() -> float:
        before = heap_kb()
        for _ in range(steps):
            learner.step()
            leak()
        return (heap_kb() - before) / steps

    return median(measure() for _ in range(3))


@pytest.mark.slow
def test_the_heap_does_not_grow_in_thirty_steps(learner):
    assert kb_per_step(learner, 10) < MAX_KB_PER_STEP


@pytest.mark.slow
def test_interned_strings_that_come_and_go_take_no_memory_after_the_resize(learner):
    before = heap_kb()
    for i in range(400_000):  # more than the table's free slots: it is made anew once more
        sys.intern(f"{i} string")
    assert heap_kb() - before < 100


@pytest.mark.slow
@pytest.mark.parametrize(
    "make_object",
    [
        lambda: bytearray(4000),
        lambda: [{} for _ in range(40)],
        lambda: [0.5 + i for i in range(80)],
        lambda: "".join(map(str, range(1200))),
    ],
    ids=["bytes", "dictionaries", "floats", "text"],
)
def test_an_object_of_4_kb_that_is_kept_at_each_step_is_detected(make_object, learner):
    kept = []
    assert kb_per_step(learner, 5, lambda: kept.append(make_object())) > MAX_KB_PER_STEP


def samples_with_slopes(**slopes: float):
    """Thirty samples, one for every hundred steps, with noise, and a warm-up in the first five."""

    def amount(name: str, i: int) -> float:
        noise = (0.0, 1e-3, -1e-3)[i % 3]
        return 1000 + noise - 500 * (i < 5) + 100 * i * slopes.get(name, 0)

    return [{"at": 100 * i, **{name: amount(name, i) for name in PER_STEP}} for i in range(30)]


def test_growth_is_the_slope_without_the_warm_up():
    assert excessive_growth(samples_with_slopes(), PER_STEP) == {}
    for name, limit in PER_STEP.items():
        samples = samples_with_slopes(**{name: 1.2 * limit})
        assert growth(samples)[name] == pytest.approx(1.2 * limit, rel=0.01)
        assert list(excessive_growth(samples, PER_STEP)) == [name]
        assert excessive_growth(samples_with_slopes(**{name: 0.8 * limit}), PER_STEP) == {}


@pytest.mark.slow
def test_leaks_of_every_resource_are_detected(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    control = [resource_use(50 * i) for i in range(4)]
    assert excessive_growth(control, PER_STEP) == {}
    kept, samples, end = [], [], Event()
    with ExitStack() as stack:
        stack.callback(end.set)
        for i in range(4):
            samples.append(resource_use(50 * i))
            kept.append(b"x" * 500_000)
            stack.enter_context(tempfile.NamedTemporaryFile())
            stack.enter_context(subprocess.Popen(["sleep", "60"])).terminate()
            Thread(target=end.wait).start()
    assert set(excessive_growth(samples, PER_STEP)) == set(PER_STEP)
