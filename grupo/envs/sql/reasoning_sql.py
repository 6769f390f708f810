"""Reasoning-SQL: partial credit for queries. Pourreza et al., 2025, arXiv:2503.23157."""

from grupo.core.extract_answer import AfterThinking, Extractor
from grupo.core.paper import Paper, Source
from grupo.envs.reward_term import RewardTerm
from grupo.envs.sql.answer import sql_query
from grupo.envs.sql.check import QueryCheck
from grupo.envs.sql.overlap import NgramOverlap, SchemaOverlap
from grupo.envs.sql.rewards import SqlExecution, SqlRuns, UnlessRight
from grupo.rewards import Reward, TagFormat


def partial_credit(
    extract: Extractor = AfterThinking(sql_query),
) -> tuple[RewardTerm, ...]:
    """r = 3 execution + runs + schema + ngrams, without a judge and a format.

    A right query has 6, whatever its words are, and a wrong one at most 3.

    Args:
        extract: Finds the query in the rollout's text.
    """
    checker = QueryCheck(extract)
    return (
        RewardTerm("execution", SqlExecution(checker), 3.0),
        RewardTerm("runs", SqlRuns(checker)),
        RewardTerm("schema", UnlessRight(SchemaOverlap(extract), checker)),
        RewardTerm("ngrams", UnlessRight(NgramOverlap(2, extract), checker)),
    )


def reasoning_sql_rewards(judge: Reward) -> tuple[RewardTerm, ...]:
    """r = 3 execution + 2 judge + runs + schema + ngrams + format.

    A right query has the full partial credit: 9 with its tags, 8 without. A wrong one has at most
    6. The judge is asked about wrong queries alone.

    Args:
        judge: How close a wrong query comes to the reference, from 0 to 1.
    """
    extract = AfterThinking(sql_query, "reasoning")
    return (
        *partial_credit(extract),
        RewardTerm("judge", UnlessRight(judge, QueryCheck(extract)), 2.0),
        RewardTerm("format", TagFormat(("reasoning", "answer"))),
    )


PAPER = Paper(
    title=(
        "Reasoning-SQL: Reinforcement Learning with SQL Tailored Partial Rewards for "
        "Reasoning-Enhanced Text-to-SQL"
    ),
    kind="reward",
    use="Answers are SQL queries on a database that you have, and right ones are rare at first.",
    tags=("reward",),
    catalogue=("reasoning-sql",),
    source=Source(
        "third_party",
        "a public training script with the abstract's terms: execution 3, or else the judge's "
        "number, query runs 1, overlap of the schema 1, bigrams 1, format up to 0.5",
    ),
    checked=("golden",),
    missing=(
        "A gain over execution alone at equal tokens: one run of each, docs/sql.md, shows none.",
        "The judge's prompt, the prompt of the policy, and BIRD.",
    ),
    deviations=(
        "A right query has the full partial credit. The script scores the overlap of right queries "
        "as that of wrong ones, so that a wrong query can have more than a right one.",
        "The judge has weight 2 and the format weight 1, as in our catalogue.",
        "Results are compared as multisets, or as sequences with ORDER BY, also on copies of the "
        "database with other rows.",
    ),
    shown=("tests/envs/sql/test_rewards.py::test_no_wrong_query_is_above_a_right_one",),
)
