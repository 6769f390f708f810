"""Data of a checkpoint that no run has written, with checksums that fit, are refused by name."""

import copy

import pytest

from grupo.storage.checkpoint import Checkpoint
from grupo.storage.manifest import InvalidCheckpoint
from grupo.training.resume.checkpoint_data import FIELDS, check_contents, check_data
from grupo.training.resume.journals import JOURNAL_CHECKSUMS
from tests.helpers.run_data import CHECKSUMS, RUN_DATA, SCORES

DATA = {**RUN_DATA, "eval_scores": {"before": SCORES, "step 2": SCORES, "after": SCORES}}
WRONG = (None, True, "x", [], [None], {"a": "b"}, 10**400, "\x1b[2J")


def checkpoint(data, **tensors) -> Checkpoint:
    return Checkpoint(3, {JOURNAL_CHECKSUMS: CHECKSUMS, **tensors}, data)


def changed(*path, value):
    """The data with another value at a path; without one, the value is removed."""
    data = copy.deepcopy(DATA)
    *above, name = path
    inner = data
    for key in above:
        inner = inner[key]
    if value is ...:
        del inner[name]
    else:
        inner[name] = value
    return data


def test_data_of_a_run_pass():
    check_contents(checkpoint(DATA, weights={}))


@pytest.mark.parametrize("name", FIELDS)
def test_a_missing_field_is_named(name):
    with pytest.raises(InvalidCheckpoint, match=rf"^data\.json: it has no '{name}'$"):
        check_data(checkpoint(changed(name, value=...)))


@pytest.mark.parametrize(
    "name", [n for n in FIELDS if n not in ("rollout_queue", "unfinished_groups")]
)
def test_values_of_another_type_are_refused_in_one_line(name):
    allowed = {
        "history": [{"a": "b"}],
        "kl": [None],
        "sampler_logp_diff": [None],
        "finished": [True],
    }
    texts = ["x", "\x1b[2J"] if isinstance(DATA[name], str) else []
    for value in WRONG:
        if value in (*allowed.get(name, []), *texts):
            continue
        with pytest.raises(InvalidCheckpoint, match=r"^data\.json: ") as refused:
            check_data(checkpoint(changed(name, value=value)))
        assert len(str(refused.value)) < 200
        assert str(refused.value).isprintable()


@pytest.mark.parametrize("value", [None, "x", {}, 10**19])
@pytest.mark.parametrize(
    "path",
    [("greedy",), ("intervals",), ("intervals", "greedy"), ("tokens_per_answer", "read")],
)
def test_scores_that_are_no_numbers_are_refused(path, value):
    if value == {} and path == ("intervals",):
        return  # an evaluation of which no rollout was scored
    with pytest.raises(InvalidCheckpoint, match=r"eval_scores: '.*' is no evaluation"):
        check_data(checkpoint(changed("eval_scores", "after", *path, value=value)))


def test_a_label_that_is_no_step_is_refused():
    with pytest.raises(InvalidCheckpoint, match="its data are not those of a run"):
        check_data(checkpoint(changed("eval_scores", "step x", value=SCORES)))


@pytest.mark.parametrize("data", [None, [], "x", 3])
def test_data_that_are_no_object_are_refused(data):
    with pytest.raises(InvalidCheckpoint, match="is no object"):
        check_data(checkpoint(data))


def test_a_checkpoint_without_weights_is_refused():
    with pytest.raises(InvalidCheckpoint, match=r"it has no weights\.safetensors"):
        check_contents(checkpoint(DATA))
