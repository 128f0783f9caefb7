"""The guard without a framework: options, connections, slow key fetches, hostile passes."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc

import pytest
from daegi_guard import DaegiUnavailable, Guard, OnUnavailable, Refusal, RefusalCode
from shop import NOW, Shop, base64url, invented, part
from stub_daegi import StubDaegi

THREADS = 8


def refusal_of(guard: Guard, text: str) -> RefusalCode | None:
    try:
        guard.check("concert", text)
    except Refusal as refusal:
        return refusal.code
    return None


async def async_refusal_of(guard: Guard, text: str) -> RefusalCode | None:
    try:
        await guard.acheck("concert", text)
    except Refusal as refusal:
        return refusal.code
    return None


def test_unknown_key_ids_block_at_most_one_thread_once_keys_are_cached(stub: StubDaegi) -> None:
    shop = Shop(stub, min_fetch_interval=0, timeout=30)
    assert refusal_of(shop.guard, shop.pass_) is None
    stub.before_keys.clear()
    with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
        checks = [threads.submit(refusal_of, shop.guard, invented()) for _ in range(THREADS)]
        done = concurrent.futures.as_completed(checks, timeout=10)
        assert [next(done).result() for _ in range(THREADS - 1)] == [RefusalCode.PASS_INVALID] * (THREADS - 1)
        assert refusal_of(shop.guard, shop.pass_) is None, "known keys are used meanwhile"
        stub.before_keys.set()
        assert next(done).result() is RefusalCode.PASS_INVALID


def test_requests_in_an_event_loop_share_one_fetch_and_leave_its_threads_free(stub: StubDaegi) -> None:
    shop = Shop(stub, timeout=30)
    stub.before_keys.clear()

    async def scenario() -> None:
        asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(2))
        checks = [asyncio.create_task(async_refusal_of(shop.guard, shop.pass_)) for _ in range(100)]
        await asyncio.to_thread(stub.fetch_began.wait, 10)
        checks.append(asyncio.create_task(async_refusal_of(shop.guard, shop.pass_)))
        # A client that disconnects does not end the fetch for which the others wait.
        checks.pop(0).cancel()
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 10) == "free"
        stub.before_keys.set()
        assert set(await asyncio.gather(*checks)) == {None}

    asyncio.run(scenario())
    assert stub.key_fetches == 1


def test_threads_and_event_loops_that_come_during_the_first_fetch_wait_for_its_keys(stub: StubDaegi) -> None:
    shop = Shop(stub, timeout=30)
    stub.before_keys.clear()
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        checks = [threads.submit(asyncio.run, async_refusal_of(shop.guard, shop.pass_))]
        assert stub.fetch_began.wait(10)
        checks.append(threads.submit(asyncio.run, async_refusal_of(shop.guard, shop.pass_)))
        checks.append(threads.submit(refusal_of, shop.guard, shop.pass_))
        assert not concurrent.futures.wait(checks, 0.2).done
        stub.before_keys.set()
        assert [check.result() for check in checks] == [None] * 3
    assert stub.key_fetches == 1


def test_one_guard_works_in_several_event_loops(stub: StubDaegi) -> None:
    shop = Shop(stub, min_fetch_interval=0)
    for _ in range(2):
        assert asyncio.run(async_refusal_of(shop.guard, shop.pass_)) is None
        assert asyncio.run(async_refusal_of(shop.guard, invented())) is RefusalCode.PASS_INVALID
    assert stub.key_fetches == 3


def test_connections_are_kept_open_and_replaced_after_the_server_has_closed_them(stub: StubDaegi) -> None:
    shop = Shop(stub)
    entry = shop.guard.check("concert", shop.pass_)
    shop.guard.complete(entry)
    shop.guard.complete(entry)
    assert stub.connections == 2, "one for keys, one for completions"
    stub.drop_connections()
    assert shop.guard.complete(entry)
    assert stub.connections == 3


def test_idle_connections_are_closed_with_the_guard(stub: StubDaegi) -> None:
    shop = Shop(stub)
    shop.guard.check("concert", shop.pass_)
    del shop
    gc.collect()  # An open socket would be a ResourceWarning, which is an error here.


def test_an_unreachable_daegi_is_an_error_of_complete_but_not_of_try_complete(stub: StubDaegi) -> None:
    shop = Shop(stub, internal_url="http://127.0.0.1:1")
    entry = shop.guard.check("concert", shop.pass_)
    with pytest.raises(DaegiUnavailable):
        shop.guard.complete(entry)
    shop.guard.try_complete(entry)


@pytest.mark.parametrize(
    "claims",
    [
        "[" * 100_000,
        '{"exp":' + "9" * 5_000 + "}",
        '{"iss":"daegi","aud":"concert","sub":"kim","jti":"01890000-0000-8000-8000-000000000007","num":true,"iat":900,"exp":1600}',
        '{"iss":"daegi","aud":"concert","sub":"kim","jti":"01890000-0000-8000-8000-000000000007","num":7,"iat":900,"exp":Infinity}',
        '{"iss":"daegi","aud":"concert","sub":"kim\\n","jti":"01890000-0000-8000-8000-000000000007","num":7,"iat":900,"exp":1600}',
    ],
    ids=["nested arrays", "a huge number", "a boolean", "infinity", "a line break"],
)
def test_hostile_claims_are_invalid_without_keys_to_verify_them(claims: str) -> None:
    guard = Guard("http://127.0.0.1:1", on_unavailable=OnUnavailable.FAIL_OPEN, clock=lambda: NOW)
    header = part({"alg": "EdDSA", "kid": "1"})
    assert refusal_of(guard, f"{header}.{base64url(claims.encode())}.AA") is RefusalCode.PASS_INVALID
    assert refusal_of(guard, f"{base64url(claims.encode())}.e30.AA") is RefusalCode.PASS_INVALID


def test_contradicting_options_are_rejected() -> None:
    with pytest.raises(ValueError, match="check online"):
        Guard("http://wait.example", online=True)
    with pytest.raises(ValueError, match="not an HTTP URL"):
        Guard("wait.example")
