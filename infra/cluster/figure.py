#!/usr/bin/env python3
"""figure.py K6_CSV HPA_TXT SVG: pods, CPU of the autoscaler and latency during the rush of infra/cluster/test.sh, as a picture."""

import collections
import csv
import sys

k6, hpa, svg = sys.argv[1:]
latencies = collections.defaultdict(list)
with open(k6) as file:
    for row in csv.DictReader(file):
        if row["metric_name"] == "http_req_duration":
            latencies[int(row["timestamp"]) // 5 * 5].append(float(row["metric_value"]))
samples = [line.split() for line in open(hpa)]
samples = [(int(row[0]), int(row[1]), int(row[2])) for row in samples if len(row) == 3]
begin, end = min(latencies), max(latencies)
rate = {time: len(values) / 5 for time, values in latencies.items()}
p99 = {time: sorted(values)[int(len(values) * 0.99)] for time, values in latencies.items()}

WIDTH, HEIGHT, LEFT = 860, 120, 60
panels = [
    ("api pods that are ready", {time: pods for time, pods, _ in samples}, "#2563eb"),
    ("CPU in percent of the request, target 50", {time: cpu for time, _, cpu in samples}, "#d97706"),
    ("requests per second", rate, "#059669"),
    ("p99 in milliseconds", p99, "#dc2626"),
]
out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 100}" height="{len(panels) * (HEIGHT + 50) + 30}" font-family="sans-serif" font-size="13">',
       '<rect width="100%" height="100%" fill="white"/>']
for index, (title, series, colour) in enumerate(panels):
    top, highest = 40 + index * (HEIGHT + 50), max(series.values()) * 1.1 or 1
    points = " ".join(f"{LEFT + WIDTH * (time - begin) / (end - begin):.1f},{top + HEIGHT * (1 - value / highest):.1f}"
                      for time, value in sorted(series.items()) if begin <= time <= end)
    out.append(f'<text x="{LEFT}" y="{top - 8}">{title}</text><text x="{LEFT - 8}" y="{top + 10}" text-anchor="end">{highest:.0f}</text>'
               f'<text x="{LEFT - 8}" y="{top + HEIGHT}" text-anchor="end">0</text>'
               f'<path d="M{LEFT} {top}V{top + HEIGHT}H{LEFT + WIDTH}" fill="none" stroke="#999"/>'
               f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
for seconds in range(0, end - begin + 1, 30):
    out.append(f'<text x="{LEFT + WIDTH * seconds / (end - begin):.0f}" y="{len(panels) * (HEIGHT + 50) + 20}" text-anchor="middle">{seconds} s</text>')
open(svg, "w").write("\n".join(out + ["</svg>\n"]))
