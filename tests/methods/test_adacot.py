"""AdaCoT: penalties for thinking at the wrong time, and masked decision tokens."""

import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.methods.adacot import MaskDecisionTokens, ThinkingTriggerPenalty, adacot
from grupo.testing.batches import make_batch, perturb_logp


def reward(base, think, needed, format=1.0):
    parts = {"think": [think], "needed": [needed], "format": [format]}
    batch = make_batch(group=[0], reward=[base], reward_terms=parts)
    return ThinkingTriggerPenalty(missed_penalty=0.2, overuse_penalty=0.3, format_penalty=1.0)(
        batch.reward, batch
    ).item()


def test_needless_thinking_is_penalised():
    assert reward(1.0, think=1.0, needed=0.0) == pytest.approx(0.7)


def test_missing_thinking_is_penalised():
    assert reward(0.0, think=0.0, needed=1.0) == pytest.approx(-0.2)


def test_right_decision_has_no_penalty():
    assert reward(1.0, think=1.0, needed=1.0) == reward(1.0, think=0.0, needed=0.0) == 1.0


def test_malformed_answer_has_the_largest_penalty():
    assert reward(1.0, think=1.0, needed=1.0, format=0.0) == 0.0


def test_decision_tokens_have_weight_0_and_others_are_unchanged():
    batch = make_batch(
        group=[0, 0],
        length=[2, 3],
        advantage=[1.0, -1.0],
        signals={"step/decision": [[1.0, 0.0, 5.0], [0.0, 0.0, 0.0]]},
    )
    assert MaskDecisionTokens()(batch).tolist() == [[0, 0.25, 0], [1 / 6] * 3]
    assert MaskDecisionTokens(token_mean)(batch).tolist() == [[0, 0.2, 0], [0.2] * 3]
    method = adacot()
    pi = perturb_logp(batch, [[0.0] * 3] * 2)
    (gradient,) = torch.autograd.grad(
        (method.aggregation(batch) * method.loss(pi, batch)).sum(), pi.logp
    )
    assert gradient[0].tolist() == [0.0, -0.25, 0.0]
    assert gradient[1].tolist() == pytest.approx([1 / 6] * 3)


def test_defaults():
    assert adacot().requires.all_signals == {"step/decision"}
