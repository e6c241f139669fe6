"""What is remembered of requests, and at whose expense."""

from __future__ import annotations

from forewarn.web.limits import Limits
from forewarn.web.memo import Heads, Memo
from forewarn.web.messages import Request
from forewarn.web.metadata import Decision, decide

DECISION = decide(Request("GET", "/metadata/versions"))


def test_a_decision_is_remembered_by_the_exact_bytes() -> None:
    memo: Memo[Decision] = Memo(Limits())
    memo.remember(b"GET a", DECISION, by="web-0")

    assert memo.recall(b"GET a") is DECISION
    assert memo.recall(b"GET A") is None


def test_a_guest_that_never_repeats_itself_pushes_out_its_own() -> None:
    memo: Memo[Decision] = Memo(Limits(memo_entries_per_caller_max=2))
    memo.remember(b"honest", DECISION, by="web-0")
    for number in range(100):
        memo.remember(b"%d" % number, DECISION, by="hostile")

    assert memo.recall(b"honest") is DECISION
    assert len(memo) == 3


def test_what_is_known_costs_nothing_again() -> None:
    memo: Memo[Decision] = Memo(Limits(memo_entries_per_caller_max=1))
    memo.remember(b"shared", DECISION, by="web-0")
    memo.remember(b"shared", DECISION, by="web-1")
    memo.remember(b"own", DECISION, by="web-1")

    assert memo.recall(b"shared") is DECISION
    assert memo.recall(b"own") is DECISION


def test_long_requests_are_not_remembered() -> None:
    memo: Memo[Decision] = Memo(Limits(memo_key_bytes_max=10))
    memo.remember(b"x" * 11, DECISION, by="web-0")

    assert len(memo) == 0


def test_a_full_memo_begins_anew() -> None:
    memo: Memo[Decision] = Memo(Limits(memo_entries_max=10))
    for number in range(25):
        memo.remember(b"%d" % number, DECISION, by=str(number))

    assert len(memo) == 5
    assert memo.recall(b"24") is DECISION


HEAD = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n"


def test_a_head_is_remembered_for_any_body_of_its_length() -> None:
    heads = Heads(Limits())
    heads.remember(HEAD + b"abcd", b"abcd", DECISION, by="web-0")

    assert heads.recall(HEAD + b"wxyz") == (DECISION, b"wxyz")
    assert heads.recall(HEAD + b"\r\n\r\n") == (DECISION, b"\r\n\r\n")


def test_a_head_with_more_or_less_behind_it_is_for_the_parser() -> None:
    """keeps S16: what is no whole request, or more than one, is not guessed at."""
    heads = Heads(Limits())
    heads.remember(HEAD + b"abcd", b"abcd", DECISION, by="web-0")

    for data in (HEAD, HEAD + b"abc", HEAD + b"abcde", HEAD[:-1], b"", b"x" + HEAD + b"abcd"):
        assert heads.recall(data) is None


def test_a_head_that_ends_otherwise_is_not_remembered() -> None:
    heads = Heads(Limits())
    odd = b"POST / HTTP/1.1\nContent-Length: 4\n\n"

    heads.remember(odd + b"abcd", b"abcd", DECISION, by="web-0")

    assert heads.recall(odd + b"abcd") is None
