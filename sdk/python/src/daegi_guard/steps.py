"""Runs one implementation of the rules with blocking and with asynchronous calls.

A rule is a generator that yields the blocking calls it needs and receives their results. Without a call, which is the common case,
it runs to its end immediately, also in an event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")
BlockingCall = Callable[[], Any]
Steps = Generator[BlockingCall, Any, T]


def run(steps: Steps[T]) -> T:
    """Runs the calls in this thread."""
    try:
        call = next(steps)
        while True:
            try:
                result = call()
            except Exception as error:
                call = steps.throw(error)
            else:
                call = steps.send(result)
    except StopIteration as end:
        value: T = end.value
        return value


async def run_async(steps: Steps[T], await_call: Callable[[BlockingCall], Awaitable[Any]]) -> T:
    """Awaits the calls."""
    try:
        call = next(steps)
        while True:
            try:
                result = await await_call(call)
            except Exception as error:
                call = steps.throw(error)
            else:
                call = steps.send(result)
    except StopIteration as end:
        value: T = end.value
        return value
