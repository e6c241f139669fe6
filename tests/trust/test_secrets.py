"""Secrets and their hashes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from forewarn.errors import Unavailable
from forewarn.trust.secrets import AT_ONCE_MAX, WAITING_MAX, Argon2Secrets
from forewarn.web.app import THREADS


def test_a_secret_is_known_again_by_its_hash_alone() -> None:
    secrets = Argon2Secrets()
    secret = secrets.make()

    hashed = secrets.hash(secret)

    assert hashed.startswith("$argon2id$")
    assert secret not in hashed
    assert secrets.is_secret(secret, hashed)
    assert not secrets.is_secret(secrets.make(), hashed)
    assert secrets.hash(secret) != hashed


def test_secrets_are_long_and_each_is_another() -> None:
    made = {Argon2Secrets().make() for _ in range(100)}

    assert len(made) == 100
    assert all(len(secret) >= 43 for secret in made)


def test_many_who_log_in_at_once_wait_for_each_other() -> None:
    secrets = Argon2Secrets()
    secret = secrets.make()
    hashed = secrets.hash(secret)

    with ThreadPoolExecutor(8) as threads:
        known = list(threads.map(lambda _: secrets.is_secret(secret, hashed), range(8)))

    assert known == [True] * 8


def test_a_flood_of_logins_does_not_occupy_every_thread() -> None:
    secrets = Argon2Secrets()
    hashed = secrets.hash(secrets.make())
    waiting = threading.Barrier(THREADS)

    def attempt(_: int) -> bool:
        waiting.wait()
        try:
            secrets.is_secret("wrong", hashed)
        except Unavailable:
            return False
        return True

    with ThreadPoolExecutor(THREADS) as threads:
        served = sum(threads.map(attempt, range(THREADS)))

    assert AT_ONCE_MAX + WAITING_MAX <= served < THREADS
    assert secrets.is_secret("wrong", hashed) is False
