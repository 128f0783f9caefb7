"""Fixtures of all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stub_daegi import StubDaegi


@pytest.fixture
def stub() -> Iterator[StubDaegi]:
    stub = StubDaegi()
    yield stub
    stub.close()
