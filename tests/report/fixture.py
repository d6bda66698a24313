# SPDX-License-Identifier: MIT
"""Run files as a sweep writes them, with known effects: material for the tests of what reads results.
Seeded: always the same."""
import json
import os
import random
import zlib

SECOND = 10**9


def region(name, kind="function", file="", line=0, function="", binary="/usr/bin/app"):
    return {"name": name, "kind": kind, "file": file, "line": line,
            "function": function or name, "binary": binary}


def bucket(ns):
    """core/latency.h"""
    shift = max(0, int(ns).bit_length() - 7)
    return int(ns) if ns < 64 else shift * 64 + (int(ns) >> shift)


def latency(rng, point, visits, mean, window):
    """Each visit took within a tenth of `mean` ns; one in ten three times as long."""
    times = [mean * (0.9 + 0.2 * rng.random()) * (3 if rng.random() < 0.1 else 1) for _ in range(visits)]
    counts = {}
    for one in times:
        counts[bucket(one)] = counts.get(bucket(one), 0) + 1
    return {"point": point, "kind": "latency", "delta": visits, "arrivals": visits, "in_flight": sum(times) / window,
            "times": [number for pair in sorted(counts.items()) for number in pair]}


def write_run(directory, number, regions, *, rate=1000.0, effects=None, experiments=40, noise=0.02,
              stacks=(), samples=(), command=("./app", "its input"), build_ids=(), seed=1, point="request",
              runtime=10 * SECOND, slow=None, units=0):
    """effects: by region's name, the program's speedup in percent if it took no time at all; between
    them it is a straight line. slow: a latency of 1 ms at a rate of 1000, in place of a throughput.
    units: so many visits a second of another point, "unit"."""
    rng = random.Random(f"{seed} {number}")
    clock = 1000 * SECOND * number
    drift = 1 + noise / 2 * rng.gauss(0, 1)
    records = [{"type": "run", "format": "causal-run", "version": 1, "run": number, "iteration": number,
                "command": list(command), "mode": regions[0]["kind"], "backend": "perf",
                "end_to_end": False, "speedups": "0 25 50 100", "seed": 7,
                "time": 1795338317 * SECOND + clock + zlib.crc32(str(seed).encode()), "clock": clock}]
    for path, build_id in build_ids:
        records.append({"type": "binary", "binary": path, "build_id": build_id})
    for index in range(1, experiments + 1):
        chosen, speedup = regions[index % len(regions)], (0, 25, 50, 100)[rng.randrange(4)]
        effect = (effects or {}).get(chosen["name"], 0) * speedup / 100
        elapsed = SECOND // 4
        s_time = elapsed * 9 // 10  # what bounds the effect lies far off
        delay = s_time * speedup // 100
        visits = rate * drift * (elapsed - delay) / SECOND / (1 - effect / 100) * (1 + noise * rng.gauss(0, 1))
        progress = {"point": point, "kind": "throughput", "delta": round(visits)}
        if slow:
            progress = latency(rng, point, round(visits), 1e9 / rate * (1 - effect / 100), elapsed - delay)
        also = [{"point": "unit", "kind": "throughput", "delta": round(visits * units / rate)}] if units else []
        records.append({"type": "experiment", "index": index, "region": chosen, "speedup": speedup,
                        "start": clock, "end": clock + elapsed, "duration": elapsed - delay,
                        "s_time": s_time, "delay": delay, "paid": delay, "owed": 0, "hits": 100, "exact": True, "flags": [],
                        "progress": [progress] + also})
        clock += SECOND // 2
    for one, count, own in samples:
        records.append({"type": "samples", "region": one, "count": count, "own": own,
                        "via": one.get("via", []), "contains": []})
    for frames, count in stacks:
        records.append({"type": "stack", "frames": frames, "count": count})
    records.append({"type": "end", "exit_status": 0, "runtime": runtime, "samples": 10000, "in_scope": 9000,
                    "periods": 10000, "drops": {}, "started": experiments, "kept": experiments,
                    "visits": 100000, "backend": "perf", "handler_ns": 0, "cpu_ns": 18 * SECOND})
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, f"run-{number:04}.jsonl"), "w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")
