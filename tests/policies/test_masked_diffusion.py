"""A masked diffusion model: what it draws, and how likely it says that was."""

import asyncio
from dataclasses import replace
from itertools import product

import pytest
import tinymlm
import torch
from tinylm import PROMPTS, batch_of
from transformers import AutoModelForMaskedLM

from grupo.errors import Refused
from grupo.helpers import Head
from grupo.policies.logits import Sampling
from grupo.policies.masked.estimates import Autoregressive, Coupled
from grupo.policies.masked.orders import Confident, LeftToRight
from grupo.policies.masked_diffusion import MaskedDiffusion, MaskedPolicy
from grupo.policies.others import laid
from grupo.randomness import uniform
from grupo.references import Follow
from grupo.rollout import Action, Rollout

ORDERS = {
    "left": (LeftToRight(), Autoregressive()),
    "coupled": (LeftToRight(), Coupled()),
    "confident": (Confident(4), Coupled()),
    "parallel": (Confident(5, at_once=2), Coupled(0.3, 0.6)),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("masked")
    return {name: str(tinymlm.plant(root / name, name)) for name in tinymlm.FAMILIES}


@pytest.fixture
def spec(folders) -> MaskedDiffusion:
    return MaskedDiffusion(folders["bert"], limit=7)


def run(work):
    return asyncio.run(work)


def answers(policy: MaskedPolicy, attempts: int = 3, key: int = 7) -> list[Action]:
    async def everyone() -> list[Action]:
        act = policy.act(key)
        return await asyncio.gather(
            *(act.fork(p, i)(Rollout(), q) for p, q in enumerate(PROMPTS) for i in range(attempts))
        )

    return run(everyone())


def batch(policy: MaskedPolicy, actions: list[Action]):
    return batch_of(policy, [Rollout((("", action),)) for action in actions])


@pytest.mark.parametrize(("order", "estimate"), ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("family", tinymlm.FAMILIES)
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.7, top_k=9)], ids=["plain", "cut"])
def test_what_was_sampled_is_evaluated_again_alike(folders, family, order, estimate, sampling):
    spec = MaskedDiffusion(folders[family], order=order, estimate=estimate, limit=7)
    policy = replace(spec, sampling=sampling).build()
    one = batch(policy, answers(policy))
    assert one.mask.sum() > 30
    torch.testing.assert_close(policy.signals(one).logp, one.old_logp, rtol=0, atol=2e-5)
    assert not (policy.signals(one).logp[one.mask] == 0).all()


def hand(policy: MaskedPolicy, shown: list[int], width: int) -> torch.Tensor:
    """Log-probabilities at every place after `shown`, the rest masked; by transformers alone."""
    model = AutoModelForMaskedLM.from_pretrained(policy.spec.model).eval()
    mask = policy.denoiser.mask
    token = torch.tensor([shown + [mask] * (width - len(shown))])
    logits = model(token).logits[0].detach()
    logits[:, mask] = -torch.inf
    return logits.log_softmax(-1)


def test_the_autoregressive_estimate_is_that_of_each_token_with_all_after_it_masked(spec):
    policy = replace(spec, estimate=Autoregressive()).build()
    action = answers(policy)[0]
    prompt = list(action.seen)
    width = len(prompt) + 7
    for i, token in enumerate(action.parts):
        here = hand(policy, prompt + list(action.parts[:i]), width)[len(prompt) + i]
        assert action.logp[i] == pytest.approx(here[token].item(), abs=1e-5)
        lot = uniform(torch.tensor([action.stream]), torch.tensor([len(prompt) + i]))
        assert Sampling().draw(here[None], lot)[0].item() == token


def test_the_probabilities_of_all_answers_add_up_to_one(spec):
    policy = replace(spec, estimate=Autoregressive(), limit=3, sampling=Sampling(top_k=2)).build()
    a, b = 5, 6  # any two tokens, with a vocabulary that is cut to them
    bias = policy.plain.get_output_embeddings().bias
    with torch.no_grad():
        bias[[a, b]] += 1000.0
    actions = [
        Action(parts, (0.0,) * 3, policy.language.read(Rollout(), "Hi"))
        for parts in product((a, b), repeat=3)
    ]
    said = policy.signals(batch(policy, actions)).logp.sum(1)
    assert said.exp().sum().item() == pytest.approx(1.0, abs=1e-5)


def test_the_coupled_estimate_is_the_mean_of_a_whole_and_a_weighed_partial_look(spec):
    policy = spec.build()
    action = answers(policy)[0]
    prompt, parts = list(action.seen), list(action.parts)
    inputs = batch(policy, [action]).inputs
    start = len(prompt)
    (u,), held = Coupled().masks(inputs["stream"][:, start], torch.tensor([start]), start + 7)
    held = held[0, start : start + len(parts)].tolist()
    assert 0.2 <= u <= 0.8
    model, mask = policy.plain, policy.denoiser.mask
    tail = [mask] * (7 - len(parts))

    def look(hidden):
        text = [mask if h else t for h, t in zip(hidden, parts, strict=True)]
        logits = model(torch.tensor([prompt + text + tail])).logits[0].detach()
        logits[:, mask] = -torch.inf
        return logits.log_softmax(-1)[start:]

    whole, one, other = look([True] * len(parts)), look(held), look([not h for h in held])
    for i, token in enumerate(parts):
        partial = one[i, token] / u if held[i] else other[i, token] / (1 - u)
        assert action.logp[i] == pytest.approx((whole[i, token] + partial).item() / 2, abs=1e-4)


def test_the_weights_of_a_look_are_those_of_the_paper():
    # u = 1/2, l_0 = -2, partial -1: (-2 + 2 (-1)) / 2 = -2
    inputs = {
        "token": torch.tensor([[9, 9]]),
        "begin": torch.tensor([[0, 0]]),
        "over": torch.tensor([[2, 2]]),
        "canvas": torch.tensor([[2, 2]]),
        "stream": torch.tensor([[3, 3]]),
    }
    row, place = torch.tensor([0, 0]), torch.tensor([0, 1])
    looks = Coupled(0.5, 0.5)(inputs, row, place, mask=1)
    said = torch.tensor([-2.0, -1.0, -2.0, -1.0])
    assert looks.fold("logp", said).tolist() == [-2.0, -2.0]
    assert looks.fold("entropy", -said).tolist() == [1.5, 1.5]


def test_the_two_masks_are_complements_and_no_others_are_seen():
    streams = torch.arange(500)
    share, held = Coupled().masks(streams, torch.full((500,), 2), 34)
    assert share.min() > 0.2
    assert share.max() < 0.8
    assert (held[:, 2:].double().mean(1) - share).abs().mean() < 0.08  # deviation 0.09 x 0.8
    inputs = {
        "token": torch.full((500, 34), 9),
        "begin": torch.full((500, 34), 2),
        "over": torch.full((500, 34), 30),
        "canvas": torch.full((500, 34), 34),
        "stream": streams[:, None].expand(-1, 34),
    }
    row, place = torch.arange(500).repeat_interleave(28), torch.arange(2, 30).repeat(500)
    looks = Coupled()(inputs, row, place, mask=1)
    hidden = (looks.token == 1).unflatten(0, (500, 3))
    assert not hidden[:, :, :2].any()  # the prompt
    assert hidden[:, :, 30:].all()  # the canvas behind it
    assert hidden[:, 0, 2:].all()
    assert (hidden[:, 1, 2:30] ^ hidden[:, 2, 2:30]).all()
    assert (looks.token[looks.view, place[:, None]] == 1).all()  # each is looked at where masked


def test_coupled_masks_vary_less_than_two_that_are_independent(spec):
    policy = replace(spec, limit=6, estimate=Coupled(0.5, 0.5)).build()
    action = next(a for a in answers(policy) if len(a.parts) == 6)
    several = batch(policy, [replace(action, stream=i) for i in range(400)])
    coupled = policy.signals(several).logp.sum(1)
    rows = several.mask.nonzero(as_tuple=True)
    looks, token = policy._looks(several)
    logits, _ = policy.denoiser.read(looks, policy.budget)
    each = logits.log_softmax(-1).gather(1, token.repeat_interleave(2)[:, None])[:, 0]
    whole, partial = each.unflatten(0, looks.view.shape).detach().unbind(1)
    # a mask alone: (l_0 + l' / u) / 2 where it hides the token, l_0 / 2 where it does not
    first = looks.view[:, 1] % 3 == 1
    alone = laid(several, {"x": (whole + torch.where(first, 2 * partial, 0.0)) / 2})["x"].sum(1)
    assert len(rows[0]) == 2400
    independent = (alone[:200] + alone[200:]).detach() / 2
    assert coupled.var() < independent.var()


def test_whoever_looks_again_looks_under_the_same_masks(spec):
    policy = spec.build()
    one = batch(policy, answers(policy))
    first = policy.signals(one).logp
    backwards = torch.arange(len(one.mask)).flip(0)
    torch.testing.assert_close(
        policy.signals(one.take(backwards)).logp.flip(0), first, rtol=0, atol=2e-5
    )
    other = [replace(action, stream=action.stream + 1) for action in answers(policy)]
    assert (policy.signals(batch(policy, other)).logp - first).abs().max() > 1e-2


@pytest.mark.parametrize(("order", "estimate"), ORDERS.values(), ids=ORDERS)
def test_a_stream_says_the_same_alone_and_among_others(spec, order, estimate):
    policy = replace(spec, order=order, estimate=estimate).build()
    together = answers(policy)
    assert [a.parts for a in answers(policy)] == [a.parts for a in together]
    alone = run(policy.act(7).fork(1, 2)(Rollout(), PROMPTS[1]))
    assert alone.parts == together[5].parts
    assert len({a.parts for a in together[3:6]}) > 1


def test_a_token_is_drawn_as_often_as_the_model_says(spec):
    policy = replace(spec, limit=1, sampling=Sampling(top_k=4)).build()

    async def many() -> list[Action]:
        act = policy.act(1)
        return await asyncio.gather(*(act.fork(i)(Rollout(), "Hi") for i in range(4000)))

    said = [action.parts[0] for action in run(many())]
    prompt = list(policy.language.read(Rollout(), "Hi"))
    p = hand(policy, prompt, len(prompt) + 1)[len(prompt)]
    four = p.topk(4)
    share = four.values.exp() / four.values.exp().sum()
    for token, expected in zip(four.indices.tolist(), share.tolist(), strict=True):
        assert said.count(token) / 4000 == pytest.approx(expected, abs=0.035)


def test_the_most_confident_place_is_unmasked_first(spec):
    policy = replace(spec, order=Confident(7), sampling=Sampling(top_k=1)).build()
    action = answers(policy)[0]
    prompt, mask = list(action.seen), policy.denoiser.mask
    text = prompt + [mask] * 7
    for _ in range(7):
        said = policy.plain(torch.tensor([text])).logits[0].detach()
        said[:, mask] = -torch.inf
        best = said.log_softmax(-1).max(-1)
        left = [i for i, t in enumerate(text) if t == mask]
        place = max(left, key=lambda i: best.values[i].item())
        text[place] = int(best.indices[place])
    assert tuple(text[len(prompt) :]) == action.parts


def test_an_answer_that_was_cut_goes_on_on_the_same_canvas(spec):
    policy = replace(spec, estimate=Autoregressive()).build()

    async def work() -> tuple[Action, Rollout]:
        act = policy.act(5)
        whole = await act(Rollout(), "Hi")
        rollout = Rollout().then("Hi", await act.until(limit=2)(Rollout(), "Hi"))
        for _ in range(2):
            rollout = rollout.then("", await act.until(limit=2 * len(rollout.turns))(rollout, ""))
        return whole, rollout

    whole, rollout = run(work())
    actions = [action for _, action in rollout.turns]
    assert [len(action.parts) for action in actions] == [2, 2, 3]  # 7 places: no room for more
    assert sum((action.parts for action in actions), ()) == whole.parts
    assert sum((action.logp for action in actions), ()) == pytest.approx(whole.logp, abs=1e-5)
    again = batch_of(policy, [rollout])
    torch.testing.assert_close(policy.signals(again).logp, again.old_logp, rtol=0, atol=2e-5)


@pytest.mark.parametrize(("order", "estimate"), ORDERS.values(), ids=ORDERS)
def test_rollouts_of_several_turns_and_contexts_are_evaluated_again_alike(spec, order, estimate):
    policy = replace(spec, order=order, estimate=estimate).build()

    async def work() -> Rollout:
        act = policy.act(5)
        rollout = Rollout().then("Hi", await act.until(limit=3)(Rollout(), "Hi"))
        rollout = rollout.then("", await act.force(rollout, "", "So"))
        rollout = rollout.then("", await act.fork(1)(rollout, ""))
        rollout = rollout.then("And?", await act.fork(2)(rollout, "And?"))
        return rollout.then("Now", await act.fork(3).anew(rollout, "Now", 2))

    again = batch_of(policy, [run(work())])
    assert again.rollout.tolist() == [0, 0]
    off = (policy.signals(again).logp - again.old_logp)[again.mask]
    assert off.abs().max() < 2e-5


def test_a_text_ends_with_the_end_or_where_it_is_told_to_stop(spec):
    policy = replace(spec, order=Confident(7)).build()
    whole = run(policy.act(3)(Rollout(), PROMPTS[2]))
    assert len(whole.parts) == 7
    letter = whole.text[2]
    cut = run(policy.act(3).until(letter)(Rollout(), PROMPTS[2]))
    assert cut.text == whole.text[: whole.text.index(letter) + 1]
    assert (cut.parts, cut.stopped) == (whole.parts, "stop")  # its block is learned as a whole
    end = policy.language.ends[0]
    assert policy.act(3)._text((*policy.language.forced("ab"), end, 9)) == "ab"


def test_what_is_recited_fills_its_last_block(spec):
    policy = replace(spec, order=Confident(4)).build()
    said = run(policy.act(3).recite(Rollout(), "Hi", "abcd"))
    end = policy.language.ends[0]
    assert said.parts == (*policy.language.forced("abcd"), end, end, end, end)
    assert not said.sampled
    other = run(policy.act(4).recite(Rollout(), "Hi", "abcd"))
    assert said.stream != other.stream  # each is looked at under masks of its own


def test_micro_batches_hold_every_row_once_and_change_no_signal(spec):
    policy = spec.build()
    one = batch(policy, answers(policy))
    whole = policy.signals(one).logp
    for budget in (1, 300, 1 << 20):
        policy.budget = budget
        parts = list(policy.micro(one))
        assert torch.cat(parts).sort().values.tolist() == list(range(len(one.mask)))
        for rows in parts:
            said = policy.signals(one.take(rows)).logp
            torch.testing.assert_close(said, whole[rows], rtol=0, atol=2e-5)
    assert len(parts) == 1


@pytest.mark.parametrize("estimate", [Autoregressive(), Coupled()], ids=["left", "coupled"])
def test_texts_that_are_read_in_parts_have_the_gradient_of_all_at_once(spec, estimate):
    policy = replace(spec, estimate=estimate).build()
    one = batch(policy, answers(policy))
    gradients = []
    for budget in (1 << 20, 100):
        policy.budget = budget
        (
            policy.signals(one).logp * torch.arange(one.mask.numel()).view_as(one.mask)
        ).sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in policy.parameters()]))
        policy.module.zero_grad()
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-3)
    assert gradients[0].abs().max() > 1


def test_it_reads_less_at_once_until_that_is_no_help(spec):
    policy = spec.build()
    one = batch(policy, answers(policy))
    said = []
    while True:
        policy.signals(one)
        if not (line := policy.halve()):
            break
        said.append(line)
    assert said[0] == "Memory does not suffice: micro-batches hold 8192 tokens from now on."
    assert len(said) < 12


def test_a_reference_stays_and_can_be_compared_with(spec):
    policy = spec.build()
    needs = ["logp@ref", "logp@t=2.0", "entropy"]
    company = policy.accompanied(needs, Follow(), ())
    one = batch(policy, answers(policy))
    before = policy.signals(one, ["entropy", "reverse_kl@ref"])
    assert before["reverse_kl@ref"].abs().max() < 1e-5
    assert (before.entropy[one.mask] >= 0).all()
    with torch.no_grad():
        for p in policy.parameters():
            p.mul_(1.1)
    ref = company.speakers["ref"].signals(one)
    torch.testing.assert_close(ref.logp, one.old_logp, rtol=0, atol=2e-5)
    assert (policy.signals(one).logp - one.old_logp).abs().max() > 0.1
    assert policy.signals(one, ["reverse_kl@ref"])["reverse_kl@ref"][one.mask].min() > 0
    hot = company.speakers["t=2.0"].signals(one, ["logp"])
    assert (hot.logp - policy.signals(one).logp).abs().max() > 0.1
    company = policy.accompanied(["logp@ref"], Follow(rate=1.0), ())
    company.after(1, policy)
    said = company.speakers["ref"].signals(one).logp
    torch.testing.assert_close(said, policy.signals(one).logp)


def test_it_takes_on_heads_and_speaks_apart(spec):
    policy = spec.build()
    one = batch(policy, answers(policy))
    policy.helped((Head("value", 0.5),))
    assert policy.signals(one, ["value"])["value"][one.mask].tolist() == [0.5] * int(one.mask.sum())
    policy.speak_apart()
    with torch.no_grad():
        for p in policy.parameters():
            p.mul_(1.1)
    old = [a.parts for a in answers(policy)]
    assert [a.parts for a in answers(policy)] == old
    policy.speak(policy.voice.take(), 3)
    assert [a.parts for a in answers(policy)] != old
    assert answers(policy)[0].version == 3


def test_what_is_exported_loads_again(spec, tmp_path):
    policy = spec.build()
    with torch.no_grad():
        for p in policy.parameters():
            p.mul_(1.05)
    policy.export(tmp_path)
    again = replace(spec, model=str(tmp_path)).build()
    one = batch(policy, answers(policy))
    torch.testing.assert_close(again.signals(one).logp, policy.signals(one).logp)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"limit": 0}, "limit: 0. Allowed: 1 or more"),
        ({"limit": 64}, "limit: 64. Allowed: below 64"),
        ({"stop": ("",)}, "stop: .* none of them empty"),
        (
            {"order": Confident(4), "estimate": Autoregressive()},
            r"order: Confident\(.*Allowed: LeftToRight\(\) with Autoregressive\(\)",
        ),
    ],
)
def test_a_spec_that_cannot_be_is_refused(spec, changes, said):
    with pytest.raises(Refused, match=said):
        replace(spec, **changes).build()


def test_what_cannot_be_used_is_refused(spec, tmp_path):
    with pytest.raises(Refused, match=r"at_once: 9. Allowed: 1 to 8"):
        Confident(8, at_once=9)
    with pytest.raises(Refused, match="above 0, in order, below 1"):
        Coupled(0.8, 0.2)
    folder = tinymlm.plant(tmp_path / "none", mask_token=None)
    with pytest.raises(Refused, match="no mask token"):
        replace(spec, model=str(folder)).build()
    with pytest.raises(Refused, match=r"others: 'teacher'. Allowed"):
        spec.build().accompanied(["logp@teacher"], Follow(), ())


def test_a_mean_of_many_looks_is_what_an_answer_is_worth(spec):
    """On average over masks l' / u counts each of the two sides once."""
    policy = replace(spec, limit=1).build()
    action = replace(answers(policy)[0], parts=(9,), logp=(0.0,))
    several = batch(policy, [replace(action, stream=i) for i in range(3000)])
    said = policy.signals(several).logp.double().mean().item()
    prompt = list(action.seen)
    exact = hand(policy, prompt, len(prompt) + 1)[len(prompt), 9].item()
    assert said == pytest.approx(exact * (1 + 2) / 2, rel=0.03)  # l' = l_0: one token alone
