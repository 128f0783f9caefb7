"""Runs the vectors of sdk/vectors, which the guards for other languages run, too; each scenario with blocking and with
asynchronous calls."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from daegi_guard import Authorization, Entry, Guard, OnUnavailable, PassSource, Refusal, RefusalCode
from stub_daegi import StubDaegi

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "vectors" / "guard.json").read_text("utf-8"))
by_name = {"argvalues": VECTORS["scenarios"], "ids": [scenario["name"] for scenario in VECTORS["scenarios"]]}


def check(guard: Guard, how: str, item: str, text: str) -> Entry:
    return guard.check(item, text) if how == "blocking" else asyncio.run(guard.acheck(item, text))


def authorize(guard: Guard, how: str, item: str, source: PassSource) -> Authorization:
    return guard.authorize(item, source) if how == "blocking" else asyncio.run(guard.aauthorize(item, source))


@pytest.mark.parametrize("how", ["blocking", "async"])
@pytest.mark.parametrize("scenario", **by_name)
def test_every_scenario_has_the_expected_outcome(scenario: dict[str, Any], how: str, stub: StubDaegi) -> None:
    now = 0
    config = scenario["config"]
    guard = Guard(
        stub.url,
        internal_url=stub.url,
        online=config["online"],
        on_unavailable=OnUnavailable(config["onUnavailable"]),
        clock_skew=config["clockSkewSeconds"],
        key_ttl=config["keyTtlSeconds"],
        min_fetch_interval=config["minFetchIntervalSeconds"],
        clock=lambda: now,
    )
    for step in scenario["steps"]:
        now = step["now"]
        stub.keys = VECTORS["keySets"].get(step["keys"])
        stub.verdict = step["verdict"] if isinstance(step["verdict"], dict) else None
        assert outcome(guard, how, step) == step["expect"]
        assert (stub.key_fetches, stub.online_checks) == (step["keyFetches"], step["onlineChecks"])


def outcome(guard: Guard, how: str, step: dict[str, Any]) -> object:
    try:
        entry = check(guard, how, step["item"], step["pass"])
    except Refusal as refusal:
        return {"refused": refusal.code}
    return {
        "entry": {
            "userId": entry.user_id,
            "itemId": entry.item_id,
            "passId": entry.pass_id,
            "number": entry.number,
            "lane": entry.lane,
            "expiresAt": entry.expires_at,
            "signatureVerified": entry.signature_verified,
            "token": entry.token,
        }
    }


def source_of(vector: dict[str, Any]) -> PassSource:
    _, _, query = vector["target"].partition("?")
    return PassSource.find(query, lambda name: str(vector["headers"].get(name, "")), vector["item"])


@pytest.mark.parametrize("vector", VECTORS["passSources"], ids=json.dumps)
def test_a_pass_is_found_in_each_of_its_sources(vector: dict[str, Any]) -> None:
    assert source_of(vector).first == vector["pass"]


@pytest.mark.parametrize("how", ["blocking", "async"])
@pytest.mark.parametrize("vector", VECTORS["requests"], ids=lambda vector: vector["name"])
def test_a_link_neither_replaces_nor_hides_a_valid_cookie(vector: dict[str, Any], how: str, stub: StubDaegi) -> None:
    stub.keys = VECTORS["keySets"].get(vector["keys"])
    guard = Guard(stub.url, clock=lambda: vector["now"])
    try:
        chosen = authorize(guard, how, vector["item"], source_of(vector))
        actual: object = {"userId": chosen.entry.user_id, "expiresAt": chosen.entry.expires_at, "keeps": chosen.keep}
    except Refusal as refusal:
        actual = {"refused": refusal.code}
    assert actual == vector["expect"]


@pytest.mark.parametrize("how", ["blocking", "async"])
def test_a_revoked_cookie_is_replaced_by_a_valid_pass_in_the_url(how: str, stub: StubDaegi) -> None:
    vector = next(vector for vector in VECTORS["requests"] if vector["name"] == "another user's pass")
    stub.keys, stub.verdict = VECTORS["keySets"]["first"], {"valid": False, "reason": "COMPLETED"}
    guard = Guard(stub.url, internal_url=stub.url, online=True, clock=lambda: vector["now"])
    with pytest.raises(Refusal) as refused:
        authorize(guard, how, vector["item"], source_of(vector))
    assert (refused.value.code, stub.online_checks) == (RefusalCode.PASS_REVOKED, 2), "both were checked"


@pytest.mark.parametrize("vector", VECTORS["responses"], ids=lambda vector: f"{vector['code']} {vector['accept']}")
def test_browsers_are_redirected_and_other_clients_get_a_problem(vector: dict[str, Any]) -> None:
    response = Refusal(RefusalCode(vector["code"])).to_response(vector["accept"], vector["waitingPage"])
    body = json.loads(response.body) if response.body else None
    assert (response.status, dict(response.headers), body) == (vector["status"], vector["headers"], vector["body"])
