"""Every rule broken once on purpose: the law must notice, or it would not notice a real mistake either."""

from collections.abc import Callable
from functools import cache
from random import Random

import pytest

from tests.pure import law
from tests.pure.cases import Case, random_case
from tests.pure.mutations import MUTATIONS, Mutation

CASES = 2000


@cache
def case_number(seed: int, unrepeatable: bool) -> Case:
    return random_case(Random(seed), unrepeatable=unrepeatable)


def broken_by(seed: int, *, unrepeatable: bool) -> bool:
    check: Callable[[Case], None] = law.check_maintained if unrepeatable else law.check_all
    try:
        check(case_number(seed, unrepeatable))
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.replacement.__name__)
def test_the_law_notices_that(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation.place, mutation.attribute, mutation.replacement)
    assert any(broken_by(seed, unrepeatable=mutation.unrepeatable) for seed in range(CASES))


@pytest.mark.parametrize("unrepeatable", [False, True])
def test_the_law_finds_nothing_when_no_rule_is_broken(unrepeatable: bool) -> None:
    assert not any(broken_by(seed, unrepeatable=unrepeatable) for seed in range(300))
