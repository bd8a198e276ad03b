"""Print how fast and how rightly `sessionlog usage` and its peers read the same logs: ccusage, tokscale, duckdb.

    python benchmarks/bench_peers.py [--claude-megabytes 100] [--codex-megabytes 100] [--native-megabytes 100]
        [--rounds 5] [--sizes 100,1000] [--small-files 100000] [--homes FOLDER] [--no-peers] [--keep]

Logs with a known truth are generated with a fixed seed; the peers are installed into a temporary folder by npm and pip;
all run in turn, round after round, in folders of their own, the logs in the page cache. A peer that cannot be installed
is named and left out. Below the table stands by how much each differs from the truth, less the traps that it is known to
fall for.
"""

import argparse
import os
import platform
import resource
import shutil
import sys
import tempfile
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.attribution import explain_ours, explain_peer
from benchmarks.contestants import SOURCES, Asker
from benchmarks.measure import make_corpus, make_homes, markdown_table
from benchmarks.peers import install
from benchmarks.stages import (
    HEAD,
    agent_stages,
    agent_truth,
    native_stages,
    size_stage,
    small_file_stages,
    start_stage,
)

SMALL_MEGABYTES = 2
SMALL_FILE_BYTES = 4000


def main():
    """Install, generate, measure, compare, clean up."""
    options = _options()
    folder = tempfile.mkdtemp(prefix="sessionlog-bench-")
    try:
        _compare(folder, options)
    finally:
        if options.keep:
            print(f"kept: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _options():
    parser = argparse.ArgumentParser(description="sessionlog and its peers over the same logs, in turn.")
    parser.add_argument("--claude-megabytes", type=float, default=100, help="0 leaves it out")
    parser.add_argument("--codex-megabytes", type=float, default=100, help="0 leaves it out")
    parser.add_argument("--native-megabytes", type=float, default=100, help="0 leaves it out")
    parser.add_argument("--small-files", type=int, default=0, help="also so many native logs of 4 kB, e.g. 100000")
    parser.add_argument("--sizes", default="", help="also Claude homes of so many megabytes, e.g. 100,1000")
    parser.add_argument("--homes", help="homes that agent_homes.py has written, with their truth beside; not grown")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--zst", action="store_true", help="pack a share of Codex's rollouts, which no peer reads")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ours", help="the sessionlog command to measure, in place of this Python's")
    parser.add_argument("--ccusage", help="a ccusage binary, in place of npm's")
    parser.add_argument("--no-peers", action="store_true", help="measure sessionlog alone")
    parser.add_argument("--keep", action="store_true", help="leave the temporary folder")
    return parser.parse_args()


def _compare(folder, options):
    tools = install(folder, ours=options.ours, peers=not options.no_peers, ccusage=options.ccusage)
    asker = Asker(tools=tools, folder=folder)
    homes = options.homes and os.path.abspath(options.homes)
    homes = homes or make_homes(
        os.path.join(folder, "homes"),
        claude_megabytes=options.claude_megabytes,
        codex_megabytes=options.codex_megabytes,
        seed=options.seed,
        zst=options.zst,
    )
    agents = {
        source: agent_stages(asker, homes, source, grow=not options.homes)
        for source, (word, _) in SOURCES.items()
        if next(Path(homes, word).rglob("*.jsonl"), None)
    }
    stages = [stage for group in agents.values() for stage in group]
    if options.native_megabytes:
        stages += native_stages(asker, make_corpus(folder, megabytes=options.native_megabytes))
    if options.small_files:
        size = options.small_files * SMALL_FILE_BYTES / 1e6
        stages += small_file_stages(asker, make_corpus(folder, megabytes=size, files=options.small_files))
    start = start_stage(asker, make_homes(os.path.join(folder, "small"), claude_megabytes=SMALL_MEGABYTES))
    start.run(max(options.rounds, 15))  # first: this also writes the .pyc files
    by_day = {source: _ask_by_day(asker, homes, source) for source in agents}
    for stage in stages:
        stage.run(options.rounds)
    sizes = [_run_size(asker, folder, float(size), options) for size in options.sizes.split(",") if size]
    least = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    _print_head(options, tools, {source: agent_truth(homes, source) for source in agents}, least)
    print(
        markdown_table(HEAD, [row for stage in (*stages, start) for row in stage.rows()], words=(0, 1, len(HEAD) - 1))
    )
    _print_sizes(sizes)
    for source, group in agents.items():
        _explain(source, agent_truth(homes, source), group[0].contestants, by_day[source])


def _ask_by_day(asker, homes, source):
    """Our report by day and model, unmeasured, before any log grows."""
    asked = asker.ours(os.path.join(homes, SOURCES[source][0]), source, "--tz", "UTC", "--by", "day,model")[0]
    asked.run()
    return asked


def _run_size(asker, folder, megabytes, options):
    homes = make_homes(os.path.join(folder, f"size-{megabytes:g}"), claude_megabytes=megabytes, seed=options.seed)
    stage = size_stage(asker, homes, megabytes)
    stage.run(options.rounds)
    shutil.rmtree(homes, ignore_errors=True)
    return stage


def _print_head(options, tools, truths, least):
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}")
    print(f"{options.rounds} rounds in turn, logs in the page cache; wall and CPU are medians of whole processes\n")
    for source, truth in truths.items():
        print(f"- {source}: {truth['stored_bytes'] / 1e6:.0f} MB, {truth['files']:,} logs, {truth['rows']:,} rows")
    for missing in tools.missing:
        print(f"- left out: {missing}")
    if "--no-ledger" not in tools.options:
        print("- this sessionlog keeps no ledger: unchanged logs are read again")
    print(f"- peak memory is of all processes of a tool together; it reads as {least / 1e6:.0f} MB where it is less\n")


def _print_sizes(sizes):
    if not sizes:
        return
    taken = [{contestant.name: contestant.taken for contestant in stage.contestants} for stage in sizes]
    rows = [
        [name, *(f"{size[name].median:.3f} ({size[name].median / size['ours'].median:.2g})" for size in taken)]
        for name in taken[0]
    ]
    print("\nClaude Code, unchanged, wall seconds (and how many times ours) by size:\n")
    print(markdown_table(("tool", *(stage.title for stage in sizes)), rows))


def _explain(source, truth, cold, by_day):
    print(f"\n== {source}")
    for contestant in cold:
        answer = contestant.answer() if contestant.read_totals else None
        if contestant.read_totals and answer is None:
            print(f"\n{contestant.name} gives no answer (exit {contestant.taken.code}: {contestant.complaint()})")
        elif contestant.name == "ours":
            explain_ours(truth, contestant.read_totals(answer), (by_day.answer() or {"rows": []})["rows"])
        elif contestant.name in {"ccusage", "tokscale"}:
            explain_peer(contestant.name, source, truth, contestant.read_totals(answer), answer)


if __name__ == "__main__":
    main()
