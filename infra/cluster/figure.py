#!/usr/bin/env python3
"""figure.py K6_CSV SAMPLES SVG: pods, CPU, shares of the pods, rate and latency during the rush of infra/cluster/test.sh, as a picture.

A line of SAMPLES holds a Unix time, the ready pods, the CPU that the autoscaler sees, and for each pod its name and the polls so far.
"""

import collections
import csv
import sys

STEP = 5  # seconds
WIDTH, HEIGHT, GAP, LEFT, TOP = 860, 110, 52, 60, 40
COLOURS = ["#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f"]


def read_samples(path):
    """Ready pods, CPU, and the share of each pod in the polls since the sample before, in percent, each by time."""
    ready, cpu, shares, before = {}, {}, collections.defaultdict(dict), {}
    for fields in map(str.split, open(path)):
        if len(fields) < 3 or not fields[2].isdigit():
            continue
        time = int(fields[0])
        ready[time], cpu[time] = int(fields[1]), int(fields[2])
        polls = dict(zip(fields[3::2], map(int, fields[4::2])))
        new = {pod: count - before.get(pod, 0) for pod, count in polls.items()}
        if before and sum(new.values()):
            for pod, count in new.items():
                shares[pod][time] = 100 * count / sum(new.values())
        before = polls
    return ready, cpu, shares


def read_latencies(path):
    by_time = collections.defaultdict(list)
    with open(path) as file:
        for row in csv.DictReader(file):
            if row["metric_name"] == "http_req_duration":
                by_time[int(row["timestamp"]) // STEP * STEP].append(float(row["metric_value"]))
    return {time: sorted(values) for time, values in by_time.items()}


k6, samples, svg = sys.argv[1:]
latencies = read_latencies(k6)
ready, cpu, shares = read_samples(samples)
begin, end = min(latencies), max(latencies)
quantile = lambda share: {time: values[int(len(values) * share)] for time, values in latencies.items()}
# Title and the curves of each panel, each with a name for the legend.
panels = [
    ("api pods that are ready", {"": ready}),
    ("CPU in percent of the request; the target is 50", {"": cpu}),
    ("share of each api pod in the polls, in percent", dict(sorted(shares.items()))),
    ("requests per second", {"": {time: len(values) / STEP for time, values in latencies.items()}}),
    ("latency in milliseconds, as k6 sees it", {"median": quantile(0.5), "p95": quantile(0.95), "p99": quantile(0.99)}),
]

x = lambda time: LEFT + WIDTH * (time - begin) / (end - begin)
bottom = TOP + len(panels) * (HEIGHT + GAP)
out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + LEFT + 40}" height="{bottom}" font-family="sans-serif" font-size="13">',
       '<rect width="100%" height="100%" fill="white"/>']
for index, (title, curves) in enumerate(panels):
    top = TOP + index * (HEIGHT + GAP)
    highest = 1.1 * max((value for curve in curves.values() for value in curve.values()), default=1) or 1
    out.append(f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{title}</text>'
               f'<text x="{LEFT - 8}" y="{top + 10}" text-anchor="end">{highest:.0f}</text><text x="{LEFT - 8}" y="{top + HEIGHT}" text-anchor="end">0</text>'
               f'<path d="M{LEFT} {top}V{top + HEIGHT}H{LEFT + WIDTH}" fill="none" stroke="#999"/>')
    for number, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)] if len(curves) > 1 else COLOURS[index % len(COLOURS)]
        points = " ".join(f"{x(time):.1f},{top + HEIGHT * (1 - value / highest):.1f}" for time, value in sorted(curve.items()) if begin <= time <= end)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if name in ("median", "p95", "p99"):
            out.append(f'<text x="{LEFT + WIDTH - 180 + 60 * number}" y="{top - 8}" fill="{colour}">{name}</text>')
    for seconds in range(0, end - begin + 1, 30):
        out.append(f'<text x="{x(begin + seconds):.0f}" y="{top + HEIGHT + 15}" text-anchor="middle" font-size="11" fill="#666">{seconds} s</text>')
open(svg, "w").write("\n".join(out + ["</svg>\n"]))
