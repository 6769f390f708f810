"""Agent Q: the shop, the loss of a pair by hand, and a search with a scripted policy."""

import asyncio
from math import exp, log

import pytest
import torch

from grupo.core.types import Task
from grupo.envs import MultiTurn
from grupo.testing.batches import make_batch, perturb_logp
from grupo.util.importing import load_module_file
from grupo.util.rng import make_rng
from tests.helpers.paths import ROOT
from tests.helpers.scripted_actor import END, script

FOLDER = ROOT / "recipes" / "agents"
COLUMNS = {"listed": ["red cup", "blue hat"], "thing": "red cup", "size": "small"}


@pytest.fixture
def load(monkeypatch):
    """Loads a module of the folder, whose neighbours it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return lambda name: load_module_file(FOLDER / f"{name}.py")


def visit(load, *actions):
    """The pages and rewards of a visit."""
    shop = load("shop").Shop()
    shop.reset(Task("t", "", columns=COLUMNS))
    return [shop.step(action) for action in actions]


def test_the_wanted_thing_in_the_wanted_size_is_rewarded_when_it_is_bought(load):
    steps = visit(load, "open red cup", "Choose small.", "buy")
    assert [(reward, done) for _, reward, done in steps] == [(0, False), (0, False), (1, True)]


@pytest.mark.parametrize(
    "actions",
    [
        ("open blue hat", "choose small", "buy"),
        ("open red cup", "choose large", "buy"),
    ],
)
def test_another_thing_or_size_earns_nothing(load, actions):
    assert visit(load, *actions)[-1] == ("", 0.0, True)


def test_other_texts_leave_the_page_and_back_leads_one_page_back(load):
    pages = [page for page, *_ in visit(load, "fly", "open red cup", "back", "open red cup")]
    assert pages[0].startswith("No such action. Shop: red cup; blue hat.")
    assert pages[1] == pages[3] != pages[2]
    assert pages[2].startswith("Shop:")


def test_demonstrations_that_are_always_right_buy_the_wanted_thing(load):
    shop = load("shop")
    (task,) = shop.visits(3, 1)
    pages = list(shop.demonstrated(task, make_rng(0), 1.0))
    assert [page.reference_answer.split()[0] for page in pages] == ["open", "choose", "buy"]


def test_loss_compares_siblings_with_the_policy_that_sampled(load):
    # h = log pi - log pi_old: 1.5 and -0.5; -log sigmoid(0.1 * 2)
    terms = {"pair": [0.0, 0.0], "visits": [1.0, 1.0]}
    batch = make_batch([0, 0], [0.7, 0.6], logp=-1.0, reward_terms=terms)
    loss = load("agent_q").agent_q(beta=0.1).loss
    value = loss(perturb_logp(batch, [[1.5], [-0.5]]), batch)
    assert value[0, 0].item() == pytest.approx(log(1 + exp(-0.2)))
    torch.testing.assert_close(value[0], value[1])


def test_search_prefers_the_wanted_thing_on_each_page_of_the_shop(load):
    recipe = load("agent_q")

    def customer(context, key):
        """One of the actions of the page, letter by letter, and the end."""
        page = context.rpartition("\n")[0].rpartition("\n")[2]
        said = context.rpartition("\n")[2]
        choices = ["open red cup", "open blue hat"]
        if "Sizes" in page:
            choices = ["choose small", "choose large"]
        elif "Cart" in page:
            choices = ["buy", "back"]
        text = make_rng(key).choice(choices) + END
        return text[len(said)]

    method = recipe.agent_q(iterations=24, branches=6, alpha=1.0, critic=recipe.no_critic)
    env = MultiTurn(load("shop").Shop, max_turns=3).open()
    shop = Task("t", "", columns=COLUMNS)
    group = asyncio.run(method.sampler(shop, env, script(customer)))
    pairs = {}
    for rollout in group.rollouts:
        pairs.setdefault(rollout.reward_terms["pair"], []).append(rollout)
    last = {tuple(r.text.split(END)[-2] for r in pair) for pair in pairs.values()}
    assert ("open red cup", "open blue hat") in last
    assert ("choose small", "choose large") in last
    assert ("open blue hat", "open red cup") not in last


@pytest.mark.slow
def test_two_rounds_of_search_raise_the_success_of_cloning(load, tmp_path):
    recipe = load("agent_q")
    rows = list(recipe.rounds(recipe.toy_recipe(recipe.save_model(tmp_path))))
    assert rows[2]["success"] > rows[0]["success"] + 0.1
