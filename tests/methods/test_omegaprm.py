"""OmegaPRM: the search for the first wrong step, the order of searches, and the loss, by hand."""

import asyncio
from dataclasses import replace
from math import log

import pytest
import torch

from grupo.core.aux_heads import DeepHead
from grupo.core.batch import Signals
from grupo.core.types import Seat
from grupo.methods.omegaprm import omegaprm
from grupo.rollouts.samplers import AfterText, FirstErrorSearch, GroupSampler
from grupo.testing.batches import make_batch
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, script

STEPS = "a|b|c|d|e|f|g|h."  # eight steps and the end letter, without the letter "r" wrong


def right(text):
    return float("r" in text)


def written(text, repaired_up_to):
    """Letters of `text`; a beginning that was cut behind few steps is continued with "r." at times.

    The first call from the prompt by an even key writes "r.", so that some rollouts are right.
    """

    def letter(context, key):
        begun = context.removeprefix("Q")
        if begun.endswith("r"):
            return "."
        steps = begun.count("|")
        is_cut = bool(begun) and begun.endswith("|") and steps <= repaired_up_to
        if (is_cut or not begun) and key % 2:
            return "r"
        return text[len(begun)]

    return letter


def search(text=STEPS, repaired_up_to=5, **arguments):
    fields = {"at": AfterText("|"), "completions": 16, "searches": 1, **arguments}
    sampler = FirstErrorSearch(GroupSampler(8), **fields)
    return asyncio.run(sampler(TASK, Once(right), script(written(text, repaired_up_to))))


def measured(rollout):
    """The values of a rollout's beginnings, by their numbers of steps."""
    cuts, values = (rollout.step_values[n] for n in ("prefix_cut", "prefix_value"))
    places = [i for i, cut in enumerate(cuts) if cut]
    return {rollout.text[:i].count("|"): values[i] for i in places}


def test_three_beginnings_are_measured_to_find_the_sixth_of_eight_steps():
    (found,) = [x for x in map(measured, search().rollouts) if x]
    assert list(found) == [4, 5, 6]  # 4 is repaired, 6 is not, and 5 is: the sixth step is wrong
    assert 0 < found[4] < 1
    assert 0 < found[5] < 1
    assert found[6] == 0.0


def test_all_wrong_rollouts_or_none_have_no_search():
    group = asyncio.run(
        FirstErrorSearch(GroupSampler(4), AfterText("|"), 2)(
            TASK, Once(lambda text: 0.0), script(lambda context, key: "a|."[len(context) - 1])
        )
    )
    assert [measured(rollout) for rollout in group.rollouts] == [{}] * 4


def test_wrong_continuations_join_the_group_when_they_are_searched():
    first = search(searches=1).rollouts
    assert len(first) == 8
    more = search(searches=20).rollouts
    assert len(more) > 8
    assert all(rollout.reward == 0.0 for rollout in more[8:])


def test_a_short_and_nearly_right_rollout_comes_first():
    sampler = FirstErrorSearch(GroupSampler(2))
    # 0.5^(1 - 0.5) 0.9^(250 / 500) = 0.7071 * 0.9487
    assert sampler.utility(0.5, 250) == pytest.approx(0.6708, abs=1e-4)
    assert sampler.utility(0.75, 250) > sampler.utility(0.5, 250) > sampler.utility(0.5, 500)


def test_the_loss_is_the_cross_entropy_with_the_share_of_right_completions():
    steps = {"step/prefix_cut": [[1.0, 0.0, 1.0]], "step/prefix_value": [[0.5, 0.0, 0.0]]}
    batch = make_batch(group=[0], length=[3], signals=steps)
    method = omegaprm(head=DeepHead("process"))
    q = torch.tensor([[0.0, 7.0, log(3.0)]], dtype=torch.float64)
    loss = method.loss(Signals(logp=batch.old_logp, process=q), batch)
    # log 2 with a label of 1/2; log(1 + 3) with a label of 0
    assert loss[0].tolist() == pytest.approx([log(2), 0.0, log(4)])


def test_rollouts_of_a_game_are_refused():
    async def game(task, env, actor):
        group = await GroupSampler(1)(task, env, actor)
        return group.with_rollouts([replace(group.rollouts[0], seat=Seat(0, 0, 2))])

    with pytest.raises(ConfigError, match="FirstErrorSearch continues rollouts that play"):
        asyncio.run(FirstErrorSearch(game)(TASK, Once(), script(written(STEPS, 5))))
