"""Pushes tasks of work, and waits for all results: 0 to n-1, each of so many seconds."""
import sys

from celery.result import ResultSet

from tasks import work

count, seconds = int(sys.argv[1]), float(sys.argv[2])
again = {"max_retries": None, "interval_start": 0.1, "interval_max": 1}
results = []
for n in range(count):
    results.append(work.apply_async((n, seconds), retry_policy=again))
print("pushed", flush=True)
assert ResultSet(results).join_native(timeout=120) == list(range(count))
