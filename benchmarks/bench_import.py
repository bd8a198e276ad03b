"""What importing the logger costs a process, against one that imports only orjson.

    python benchmarks/bench_import.py

Whole processes, interleaved; the fastest and the median of each are printed with the ratio of the fastest.
"""

import statistics
import subprocess
import sys
import time

ROUNDS = 40
SCRIPTS = {
    "pass": "pass",
    "import orjson": "import orjson",
    "import sessionlog": "import sessionlog",
    "… then SessionLogger": "import sessionlog; sessionlog.SessionLogger",
    "… then one emit": "import sessionlog, tempfile; sessionlog.SessionLogger(tempfile.mkdtemp()).emit('x', {})",
}


def main() -> None:
    """Run the processes in turn and print a table."""
    times = {name: [] for name in SCRIPTS}
    for _ in range(ROUNDS):
        for name, script in SCRIPTS.items():
            before = time.perf_counter()
            subprocess.run([sys.executable, "-c", script], check=True)
            times[name].append((time.perf_counter() - before) * 1000)
    floor = min(times["import orjson"])
    print(f"{'python -c …':<22}{'min ms':>9}{'median ms':>11}{'× orjson':>10}")
    for name, spent in times.items():
        print(f"{name:<22}{min(spent):>9.1f}{statistics.median(spent):>11.1f}{min(spent) / floor:>10.2f}")


if __name__ == "__main__":
    main()
