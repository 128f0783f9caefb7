#!/usr/bin/env python3
"""People who join a line one after the other, poll over connections that they keep, and order with their pass.

Every request that fails (no answer, or 5xx) is counted by kind. A person is lost if their ticket ends in a status other than
ENTERABLE or COMPLETED, or was not admitted by the deadline. Prints a report as JSON. Exits with 1 if a person was lost, and with
--strict also if a request failed.
"""

import argparse
import collections
import http.client
import json
import os
import random
import select
import sys
import threading
import time
import urllib.parse

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--base", default="http://127.0.0.1:8080", help="the public address")
parser.add_argument("--orders", default="", help="URL of the order service; without it no orders are placed")
parser.add_argument("--item", default="concert")
parser.add_argument("--people", type=int, default=100)
parser.add_argument("--rate", type=float, default=20, help="joins per second")
parser.add_argument("--poll", type=float, default=1.0, help="at most this many seconds between two polls")
parser.add_argument("--deadline", type=float, default=120, help="seconds for one person")
parser.add_argument("--stay", type=float, default=0, help="keep polling at least until this many seconds after the start")
parser.add_argument("--while", dest="file", default="", help="keep polling while this file exists")
parser.add_argument("--joined", default="", help="create this file when 40 people have joined")
parser.add_argument("--careless", action="store_true", help="do not look whether a kept connection was closed before using it")
parser.add_argument("--strict", action="store_true", help="a request that failed is a failure")
options = parser.parse_args()

START = time.time()
lock = threading.Lock()
answers, errors, fates = collections.Counter(), collections.Counter(), {}
latencies, failures, tickets = [], [], []


class Client:
    """One kept connection. It is opened again after an answer with `Connection: close`."""

    def __init__(self, base):
        url = urllib.parse.urlsplit(base)
        self.connection = http.client.HTTPConnection(url.hostname, url.port or 80, timeout=15)

    def ask(self, kind, method, path, body=None, headers={}):
        sock = self.connection.sock
        # Browsers and proxies do not use a connection that the other side has closed.
        if sock and not options.careless and select.select([sock], [], [], 0)[0]:
            self.connection.close()
        begin = time.time()
        try:
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            self.failed(begin, f"{kind} {type(error).__name__}")
            return None, None
        with lock:
            answers[f"{kind} {response.status}"] += 1
            latencies.append(time.time() - begin)
        if response.status >= 500:
            self.failed(begin, f"{kind} {response.status}")
        try:
            return response.status, json.loads(data)
        except ValueError:
            return response.status, None

    @staticmethod
    def failed(begin, what):
        with lock:
            errors[what] += 1
            failures.append((round(begin - START, 1), what))


def order(ticket):
    """Orders, and repeats it while the service is not available. The outcome, None if it was accepted."""
    client = Client(options.orders)
    headers = {"authorization": f"Bearer {ticket['pass']}", "content-type": "application/json"}
    for _ in range(10):
        status, answer = client.ask("order", "POST", "/orders", json.dumps({"itemId": options.item}), headers)
        if status and status < 500:
            break
        time.sleep(1)
    return None if status and status < 300 else f"order {status} {answer}"


def must_stay():
    return time.time() - START < options.stay or os.path.exists(options.file)


def person(name):
    client, line = Client(options.base), f"/api/v1/item/{options.item}/waiting-queue"
    token = ticket = fate = None
    admitted, born = False, time.time()
    while time.time() - born < options.deadline or (admitted and must_stay()):
        if token is None:
            status, answer = client.ask("join", "POST", line, None, {"user-id": name, "content-length": "0"})
            if status not in (200, 201):
                time.sleep(0.5)
                continue
            ticket, token = answer, answer["token"]
            with lock:
                tickets.append(token)
                if options.joined and len(tickets) == 40:
                    open(options.joined, "w").close()
        else:
            status, answer = client.ask("poll", "GET", f"{line}/{token}")
            if status == 200:
                ticket = answer
        fate = ticket["status"]
        # The order service refuses some cards, and those people leave.
        if fate == "LEFT" and admitted and options.orders:
            fate = "COMPLETED"
        if fate == "ENTERABLE" and not admitted:
            admitted = True
            refused = order(ticket) if options.orders else None
            if refused:
                fate = refused
                break
        if admitted and not must_stay():
            break
        if fate not in ("WAITING", "ENTERABLE", "COMPLETED"):
            break
        time.sleep(min(options.poll, (ticket.get("pollAfterMs") or 1000) / 1000))
    with lock:
        fates[name] = fate if admitted or fate not in ("WAITING", None) else f"not admitted ({fate})"


prefix, threads = f"p{random.randrange(10**6)}", []
for number in range(options.people):
    thread = threading.Thread(target=person, args=(f"{prefix}-{number}",), daemon=True)
    thread.start()
    threads.append(thread)
    time.sleep(1 / options.rate)
for thread in threads:
    thread.join()
latencies.sort()
quantile = lambda share: round(1000 * latencies[min(len(latencies) - 1, int(len(latencies) * share))], 1) if latencies else None
json.dump(
    {
        "people": options.people, "seconds": round(time.time() - START, 1), "requests": sum(answers.values()),
        "answers": answers, "errors": errors, "fate": collections.Counter(fates.values()),
        "p50_ms": quantile(0.5), "p99_ms": quantile(0.99), "max_ms": quantile(1), "failures": failures[:20],
    },
    sys.stdout, indent=1,
)
lost = [name for name, fate in fates.items() if fate not in ("ENTERABLE", "COMPLETED")]
sys.exit(1 if lost or (options.strict and errors) else 0)
