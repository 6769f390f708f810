"""The toy model of rule books: its tokens, and what it can answer with and without a document."""

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.models.causal_lm import CausalLM
from grupo.tasks.document_questions import DocumentQuestions, RuleBooks
from grupo.toy.arithmetic_lm import ensure_trained
from grupo.toy.rule_books_lm import ENV, ToyRuleBooksLM


def test_a_rule_is_one_token_whose_embedding_begins_as_a_sum(tmp_path):
    ToyRuleBooksLM().save_untrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer.tokenize("have lamp lamp-4 lamp 4. ") == [
        *("have ", "lamp ", "lamp-4 ", "lamp ", "4", ". ")
    ]
    embedding = AutoModelForCausalLM.from_pretrained(tmp_path).get_input_embeddings().weight
    lamp, rule, code = (
        embedding[tokenizer.convert_tokens_to_ids(x)] for x in ("lamp ", "lamp-4 ", "4")
    )
    assert torch.equal(rule, lamp + code)


@pytest.mark.slow
def test_the_beginner_reads_rules_and_cannot_guess_them():
    model = ToyRuleBooksLM()
    policy = CausalLM(str(ensure_trained(model)), max_new_tokens=model.max_new_tokens).build()
    shown = RuleBooks(40, 40, max_objects=4, size=100, seed=9, shown_share=1.0).load()
    assert mean_terms(policy, ENV, shown)["correct"] > 0.9
    assert mean_terms(policy, ENV, DocumentQuestions().load())["correct"] < 0.01
