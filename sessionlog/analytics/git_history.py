"""Git history: the commits that were made on this machine, and what became of them.

Only git's reading commands are used. A repository's own configuration starts no program and opens no connection: hooks,
monitors, external diffs, text conversions and signature checks are off, and no protocol is allowed.

A commit is known by its author and author time, which amending, rebasing and cherry-picking keep: such versions are one
commit. Git's formats: https://git-scm.com/docs/git-log#_pretty_formats, https://git-scm.com/docs/git-patch-id
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from sessionlog.errors import GitFailed

_SAFE = (
    "--no-pager", "--no-optional-locks", "--literal-pathspecs", "-c", "core.fsmonitor=false",
    "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false", "-c", "log.mailmap=false",
    "-c", "protocol.allow=never",
)  # fmt: skip
_KEPT = ("PATH", "HOME", "USERPROFILE", "XDG_CONFIG_HOME", "SYSTEMROOT", "TMPDIR")
_FIXED = {
    "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}  # fmt: skip
_TIMEOUT_S = 60.0
_DAY_S = 86_400

_FORMAT = "%H%n%P%n%at%n%ct%n%ae%n%s%n%b"
_PATCH = ("-p", "--no-ext-diff", "--no-textconv", "--no-color", "--format=commit %H")
_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,64})")
_MADE = re.compile(r"commit(?! \(merge\))|cherry-pick|rebase|revert|am:")
"""The reflog's words for an action that makes commits here, as opposed to pull, checkout, merge and reset."""

_LONGEST_REVERTS = 20

_MOST_TIPS = 50
"""Branch ends per repository that are searched for as squashed merges, one `git diff` each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit made on this machine.

    Attributes:
        sha: The version that counts: the merged one, else the newest on a branch, else the newest.
        time_s: Author time, seconds since 1970 UTC.
        branch: The local branch that it was made on; empty if the reflog no longer has it.
        fate: `merged`: in the default branch, as it is, rebased or squashed; `reverted` there; `open`: on a branch or
            tag that is not merged; `lost`: on none.
        added: Lines added; binary files have none.
        removed: Lines removed.
        is_copy: It only has the change of other commits here: it squashes their branch, or was made again from one.
    """

    sha: str
    time_s: int
    branch: str
    fate: str
    added: int
    removed: int
    is_copy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a repository's history has since some time.

    Attributes:
        commits: Made on this machine, oldest first; merge commits are left out.
        others: Times, in seconds, of commits by others, which came here by fetching.
        into: The default branch, or the one that was asked for; empty if there is none.
        caveats: Sentences on what could not be found out.
    """

    commits: tuple[Commit, ...]
    others: tuple[int, ...]
    into: str
    caveats: tuple[str, ...] = ()


def find_repository(folder: str) -> str | None:
    """Return the `.git` folder that a folder and all its worktrees share; None if it is gone or in no repository.

    Raises:
        GitFailed: Git is missing, or refuses the repository.
    """
    if not os.path.isdir(folder):
        return None
    try:
        found = _git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir")
    except GitFailed as error:
        if "not a git repository" in str(error):
            return None
        raise
    return os.path.realpath(found.rstrip("\n"))


def read_history(repository: str, since_s: int, into: str | None = None) -> History:
    """Read what was committed since a time, in seconds since 1970 UTC.

    Args:
        repository: Its `.git` folder.
        since_s: The earliest author time.
        into: The branch into which work is merged; by default the remote's default branch with the local one of that
            name, else `main`, `master` or `trunk`.

    Raises:
        GitFailed: Git fails, or there is no branch `into`.
    """
    return _Reader(repository, since_s, into).history()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """One commit object."""

    sha: str
    parents: tuple[str, ...]
    author: str
    author_s: int
    committed_s: int
    subject: str
    body: str


class _Reader:
    """Reads one repository; each property is one or two git commands."""

    def __init__(self, repository: str, since_s: int, into: str | None) -> None:
        self.repository = repository
        self.since_s = since_s
        self.asked_into = into
        self.caveats: list[str] = []

    def history(self) -> History:
        own, others = [], []
        for group in self.works():
            if any(version.sha in self.made or version.author == self.email for version in group):
                own.append(group)
            else:
                others.append(group[0].author_s)
        landed = self.landed(own)
        chosen = [(group, self.choose(group, landed)) for group in own]
        copies = {
            sha for group in own for version in group
            if (sha := landed.get(version.sha)) and sha not in {one.sha for one in group}
        }  # fmt: skip
        lines = self.line_counts([version.sha for _, version in chosen])
        commits = (
            Commit(
                sha=version.sha, time_s=version.author_s, branch=self.branch(group), fate=self.fate(group, landed),
                added=lines.get(version.sha, (0, 0))[0], removed=lines.get(version.sha, (0, 0))[1],
                is_copy=version.sha in copies,
            )
            for group, version in chosen
        )  # fmt: skip
        return History(
            commits=tuple(sorted(commits, key=lambda commit: (commit.time_s, commit.sha))),
            others=tuple(sorted(others)), into=self.targets[0] if self.targets else "", caveats=tuple(self.caveats),
        )  # fmt: skip

    # What the repository has

    @cached_property
    def email(self) -> str | None:
        return self.optional("config", "--get", "user.email")

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The branches whose commits are merged: names that git takes, the first for people."""
        if self.asked_into is not None:
            names = [f"refs/heads/{self.asked_into}", f"refs/remotes/{self.asked_into}"]
            found = tuple(name for name in names if self.exists(name))
            if not found:
                raise GitFailed(f"{self.repository}: there is no branch {self.asked_into!r}")
            return found
        remote = self.optional("symbolic-ref", "refs/remotes/origin/HEAD")
        if remote is not None and self.exists(remote):
            local = f"refs/heads/{remote.removeprefix('refs/remotes/origin/')}"
            return (remote, local) if self.exists(local) else (remote,)
        for name in ("main", "master", "trunk"):
            found = tuple(ref for ref in (f"refs/heads/{name}", f"refs/remotes/origin/{name}") if self.exists(ref))
            if found:
                return found
        self.caveats.append("has no main, master or trunk: name the branch with --into")
        return ()

    @cached_property
    def made_on(self) -> Mapping[str, set[str]]:
        """Commit → the refs on which it was made, by their reflogs; `HEAD` among them."""
        made: dict[str, set[str]] = defaultdict(set)
        text = self.optional("log", "--walk-reflogs", "--all", "--format=%H%x00%gD%x00%gs", "--date=unix") or ""
        for line in text.split("\n"):
            sha, _, rest = line.partition("\0")
            ref, _, action = rest.partition("\0")
            if _MADE.match(action) and not ref.startswith("refs/stash"):
                made[sha].add(ref.rpartition("@{")[0])
        return made

    @cached_property
    def made(self) -> Collection[str]:
        return self.made_on.keys()

    @cached_property
    def reachable(self) -> Mapping[str, _Version]:
        """Versions on any branch or tag since the time, without merge commits."""
        return {version.sha: version for version in self.versions("--exclude=refs/stash", "--all", *self.recent)}

    @cached_property
    def target_versions(self) -> Mapping[str, _Version]:
        """All commits of the targets since the time, merges included."""
        if not self.targets:
            return {}
        return {version.sha: version for version in self.versions(*self.targets, self.recent[-1])}

    @property
    def recent(self) -> tuple[str, str]:
        # Committing never precedes authoring but by a wrong clock.
        return "--no-merges", f"--since={max(0, self.since_s - _DAY_S)}"

    def versions(self, *arguments: str, shas: Iterable[str] | None = None) -> Iterator[_Version]:
        stdin = None if shas is None else "".join(f"{sha}\n" for sha in shas)
        # Git ends a message at a NUL, so that no message can contain the separator.
        for record in _git(self.repository, "log", "-z", f"--format={_FORMAT}", *arguments, stdin=stdin).split("\0"):
            fields = record.split("\n", 6)
            if len(fields) < 6 or not fields[2].isdigit() or not fields[3].isdigit():
                continue
            sha, parents, author_s, committed_s, author, subject, *body = fields
            yield _Version(
                sha=sha, parents=tuple(parents.split()), author=author, author_s=int(author_s),
                committed_s=int(committed_s), subject=subject, body=body[0] if body else "",
            )  # fmt: skip

    def works(self) -> Iterator[list[_Version]]:
        """Yield the versions of each commit since the time: equal author and author time.

        Of two on branches the subject is equal, too: scripts make several commits in a second.
        """
        missing = [sha for sha in self.made if sha not in self.reachable]
        only_reflog = self.versions("--no-walk=unsorted", "--ignore-missing", "--no-merges", "--stdin", shas=missing)
        same_time: dict[tuple[str, int], list[_Version]] = defaultdict(list)
        for version in (*self.reachable.values(), *(only_reflog if missing else ())):
            if version.author_s >= self.since_s:
                same_time[version.author, version.author_s].append(version)
        for group in same_time.values():
            subjects: dict[str, list[_Version]] = defaultdict(list)
            for version in group:
                if version.sha in self.reachable:
                    subjects[version.subject].append(version)
            if not subjects:
                yield group
                continue
            replaced = [version for version in group if version.sha not in self.reachable]
            first, *rest = subjects.values()
            yield [*first, *replaced]
            yield from rest

    # What became of it

    def landed(self, groups: Collection[list[_Version]]) -> Mapping[str, str]:
        """Return version → the commit of a target that has its change."""
        found = {sha: sha for group in groups for sha in (v.sha for v in group) if sha in self.target_versions}
        open_groups = [group for group in groups if not any(version.sha in found for version in group)]
        if not open_groups or not self.targets:
            return found
        try:
            landed_as = dict(self.patch_ids(*self.targets, *self.recent))
            shas = [version.sha for group in open_groups for version in group]
            for patch, sha in self.patch_ids("--no-walk=unsorted", "--stdin", shas=shas):
                if patch in landed_as:
                    found[sha] = landed_as[patch]
            still_open = [group for group in open_groups if not any(version.sha in found for version in group)]
            found |= self.squashed(still_open, landed_as)
        except GitFailed as error:
            self.caveats.append(f"rebased and squashed merges were not looked for: {error}")
        return found

    def squashed(self, groups: Collection[list[_Version]], landed_as: Mapping[str, str]) -> dict[str, str]:
        """Return version → the commit of a target that has the change of its whole branch."""
        versions = {version.sha for group in groups for version in group}
        parents = {parent for group in groups for version in group for parent in version.parents}
        tips = sorted(versions - parents)
        if len(tips) > _MOST_TIPS:
            self.caveats.append(f"squashed merges were looked for on {_MOST_TIPS} of {len(tips)} branches")
        found: dict[str, str] = {}
        for tip in tips[:_MOST_TIPS]:
            base = self.optional("merge-base", self.targets[0], tip)
            if base is None:
                continue
            diff = _git(self.repository, "diff", *_PATCH[:-1], base, tip)
            for patch, _ in _parse_patch_ids(_git(self.repository, "patch-id", "--stable", stdin=diff)):
                if patch in landed_as:
                    on_branch = _git(self.repository, "rev-list", f"{base}..{tip}").split()
                    found |= dict.fromkeys(versions.intersection(on_branch), landed_as[patch])
        return found

    def patch_ids(self, *arguments: str, shas: Iterable[str] | None = None) -> list[tuple[str, str]]:
        """Return (patch id, commit), the newest commit first; equal changes have equal ids."""
        stdin = None if shas is None else "".join(f"{sha}\n" for sha in shas)
        patches = _git(self.repository, "log", *_PATCH, *arguments, stdin=stdin)
        return _parse_patch_ids(_git(self.repository, "patch-id", "--stable", stdin=patches))

    @cached_property
    def reverts(self) -> Mapping[str, list[str]]:
        """Beginning of a reverted commit's name, 7 digits → the commits of a target that revert it."""
        found: dict[str, list[str]] = defaultdict(list)
        for version in self.target_versions.values():
            for name in _REVERTS.findall(version.body):
                found[name[:7]].append(version.sha)
        return found

    def is_reverted(self, sha: str, depth: int = 0) -> bool:
        """Whether a target has reverted a commit, and has not reverted that in turn."""
        reverting = [other for other in self.reverts.get(sha[:7], ()) if other != sha]
        # A message can name any commit, so that a chain of reverts need not end.
        return depth < _LONGEST_REVERTS and any(not self.is_reverted(other, depth + 1) for other in reverting)

    def fate(self, group: list[_Version], landed: Mapping[str, str]) -> str:
        merged = [landed[version.sha] for version in group if version.sha in landed]
        if merged:
            return "reverted" if all(map(self.is_reverted, merged)) else "merged"
        return "open" if any(version.sha in self.reachable for version in group) else "lost"

    def choose(self, group: list[_Version], landed: Mapping[str, str]) -> _Version:
        return max(group, key=lambda version: (
            version.sha in landed, version.sha in self.reachable, version.committed_s, version.sha,
        ))  # fmt: skip

    def branch(self, group: list[_Version]) -> str:
        refs = {ref for version in group for ref in self.made_on.get(version.sha, ()) if ref.startswith("refs/heads/")}
        return min(refs, default="").removeprefix("refs/heads/")

    def line_counts(self, shas: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """Return commit → lines added and removed."""
        counts: dict[str, tuple[int, int]] = {}
        if not shas:
            return counts
        text = _git(
            self.repository, "log", "--no-walk=unsorted", "--stdin", "--numstat", "--no-ext-diff", "--no-textconv",
            "--format=%x00%H", stdin="".join(f"{sha}\n" for sha in shas),
        )  # fmt: skip
        for record in text.split("\0")[1:]:
            sha, *rows = record.split("\n")
            numbers = [row.split("\t", 2)[:2] for row in rows if row]
            added, removed = (sum(int(pair[i]) for pair in numbers if pair[i].isdigit()) for i in (0, 1))
            counts[sha] = added, removed
        return counts

    def exists(self, ref: str) -> bool:
        return self.optional("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}") is not None

    def optional(self, *arguments: str) -> str | None:
        """Return the output of a command without its last line end; None where it fails or has none."""
        try:
            return _git(self.repository, *arguments).rstrip("\n") or None
        except GitFailed:
            return None


def _parse_patch_ids(text: str) -> list[tuple[str, str]]:
    pairs = (line.split(" ", 1) for line in text.splitlines())
    return [(pair[0], pair[1]) for pair in pairs if len(pair) == 2]


def _git(folder: str, *arguments: str, stdin: str | None = None) -> str:
    import subprocess  # takes 3 ms, and most projects have no repository here

    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _FIXED
    try:
        run = subprocess.run(  # noqa: S603 - no shell; refs and names of commits come from git itself
            ["git", *_SAFE, "-C", folder, *arguments],  # noqa: S607 - the git on the user's PATH
            input=b"" if stdin is None else stdin.encode("utf-8", "surrogateescape"), capture_output=True,
            env=environment, timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise GitFailed("git is not installed, or not on PATH") from error
    except subprocess.TimeoutExpired as error:
        raise GitFailed(f"git {arguments[0]} took more than {_TIMEOUT_S:.0f} s in {folder}") from error
    if run.returncode:
        raise GitFailed(f"{folder}: {_first_line(run.stderr)}")
    return run.stdout.decode("utf-8", "surrogateescape")


def _first_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else "git failed"
