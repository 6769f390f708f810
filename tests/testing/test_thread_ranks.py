"""Ranks that are threads: what is raised if one of them fails."""

import pytest

from grupo.distributed.base import Ranks
from grupo.distributed.phase import Phase
from grupo.testing.thread_ranks import run_ranks


def test_the_error_of_a_rank_is_raised_and_not_that_of_those_that_wait_for_it():
    def fail_in_rank_1(ranks: Ranks) -> list[bytes]:
        if ranks.rank == 1:
            raise ValueError("rank 1 has failed")
        return ranks.exchange(b"", Phase.STEP_ENDED)

    with pytest.raises(ValueError, match="rank 1 has failed"):
        run_ranks(2, fail_in_rank_1)
