"""What every post promises: inherit `PostContract`, and say how to make one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest

from forewarn.core.targets import Target
from forewarn.errors import Refused, Unavailable
from forewarn.ports.hooks import Post

HEADERS = (("Content-Type", "application/json"), ("webhook-id", "c.0"))


class PostContract(ABC):
    """The contract of `forewarn.ports.hooks.Post`."""

    @abstractmethod
    def answering(self, status: int) -> AbstractContextManager[tuple[Post, Target]]:
        """A post, and an allowed target that answers everything with this status; 0: nobody is there."""

    @pytest.mark.parametrize("status", [200, 204, 302, 404, 500])
    def test_the_status_is_told_whichever_it_is(self, status: int) -> None:
        with self.answering(status) as (post, target):
            assert post.deliver(target, HEADERS, b"{}") == status

    def test_a_target_that_is_away_is_unavailable(self) -> None:
        with self.answering(0) as (post, target), pytest.raises(Unavailable):
            post.deliver(target, HEADERS, b"{}")

    def test_what_is_not_allowed_is_refused(self) -> None:
        with self.answering(200) as (post, target):
            for host in ("evil.example", "169.254.169.254"):
                other = replace(target, host=host)
                with pytest.raises(Refused):
                    post.check(other)
                with pytest.raises(Refused):
                    post.deliver(other, HEADERS, b"{}")

    def test_what_is_allowed_passes_the_check(self) -> None:
        with self.answering(200) as (post, target):
            post.check(target)
