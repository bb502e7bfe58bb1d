"""Commit files to a separate branch. The working tree, the index and HEAD stay unchanged."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.course.config import CourseError
from grader.course.folders import write_files
from grader.sandbox.temporary import home

MARK = "Published-tree"
"""The key of a line in commit messages. The line names the commit's tree if ``publish`` made the commit."""


@dataclass(frozen=True)
class Published:
    """The branch after ``publish``.

    Attributes:
        commit: the branch's last commit.
        new: whether ``publish`` added this commit.
        changed: number of files that the added commit changed.
    """

    branch: str
    commit: str
    new: bool
    changed: int = 0


class Repository:
    """The git repository of a folder. If git refuses a command, methods raise CourseError with a one-line message.

    Attributes:
        root: the top folder of the working tree.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._dropped = folder, frozenset[str]()
        # In a git hook, environment variables such as GIT_DIR name the hook's repository. That repository may differ
        # from the folder's repository, so git runs without these variables.
        named = self._run("rev-parse", "--local-env-vars").split()
        self._dropped = frozenset(name for name in named if not name.startswith("GIT_CONFIG"))
        self._run("rev-parse", "--git-dir")
        self.root = Path(self._run("rev-parse", "--show-toplevel"))

    def publish(self, branch: str, files: Mapping[str, str]) -> Published:
        """Make the branch contain exactly these files. If a file changed, add one commit to the branch; else add none.

        Raises:
            CourseError: the branch is checked out, ``publish`` did not make the branch's last commit, or git fails.
        """
        ref = f"refs/heads/{branch}"
        if place := self._checked_out(ref):
            raise CourseError(
                f"the branch {branch} is checked out in {place}; switch to another branch there, then publish"
            )
        here, there = self._commit(ref), self._commit(f"refs/remotes/origin/{branch}")
        # Origin has a newer commit if another clone published.
        before = there if self._is_before(here, there) else here
        if before:
            self._refuse_foreign(branch, before)
        tree = self._tree(files)
        if before and self._run("rev-parse", f"{before}^{{tree}}") == tree:
            if before != here:
                self._run("update-ref", ref, before, here)
            return Published(branch, before, new=False)
        changed = self._run("diff-tree", "-r", "--name-only", before, tree).count("\n") + 1 if before else len(files)
        commit = self._commit_tree(tree, before, branch)
        self._run("update-ref", "-m", "shardlings publish", ref, commit, here)
        return Published(branch, commit, new=True, changed=changed)

    def uncommitted(self, *paths: str) -> list[str]:
        """Return the files below these paths that differ from the last commit."""
        lines = self._run(
            "--no-optional-locks", "status", "--porcelain", "--untracked-files=all", "--", *paths
        ).splitlines()
        return [line[2:].strip().strip('"') for line in lines]

    def _commit(self, ref: str) -> str:
        return self._run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", ok=(0, 1))

    def _is_before(self, here: str, there: str) -> bool:
        """Return whether the commit ``there`` descends from ``here``. Every commit descends from "" (no commit)."""
        if not (here and there):
            return bool(there)
        return self._run("merge-base", here, there, ok=(0, 1)) == here

    def _checked_out(self, ref: str) -> str:
        place = ""
        for line in self._run("worktree", "list", "--porcelain").splitlines():
            word, _, rest = line.partition(" ")
            if word == "worktree":
                place = rest
            if word == "branch" and rest == ref:
                return place
        return ""

    def _refuse_foreign(self, branch: str, commit: str) -> None:
        for entry in self._run("log", "-z", "--format=%H%n%T%n%B", commit).strip("\0").split("\0"):
            found, tree, *message = entry.splitlines()
            if f"{MARK}: {tree}" not in message:
                raise CourseError(
                    f"the branch {branch} has a commit that publish did not make ({found[:12]}); rename the branch "
                    f"(git branch -m {branch} {branch}-mine) or delete it, then publish again"
                )

    def _tree(self, files: Mapping[str, str]) -> str:
        """Make a git tree with these files, with a temporary index, and return the tree's id."""
        with tempfile.TemporaryDirectory(dir=home()) as temporary:
            root = Path(temporary, "files")
            write_files(root, files)
            paths = sorted(files)
            whole = "".join(f"{root / path}\n" for path in paths)
            ids = self._run("hash-object", "-w", "--no-filters", "--stdin-paths", given=whole).split()
            listed = "".join(f"100644 {name}\t{path}\0" for name, path in zip(ids, paths, strict=True))
            index = {"GIT_INDEX_FILE": str(Path(temporary, "index"))}
            self._run("update-index", "-z", "--index-info", given=listed, env=index)
            return self._run("write-tree", env=index)

    def _commit_tree(self, tree: str, parent: str, branch: str) -> str:
        source = self._run("rev-parse", "--verify", "--quiet", "HEAD", ok=(0, 1))
        message = f"Publish the {branch} branch" + (f", from {source[:12]}" if source else "")
        parents = ["-p", parent] if parent else []
        return self._run("commit-tree", tree, *parents, "-m", message, "-m", f"{MARK}: {tree}")

    def _run(
        self, *words: str, given: str = "", env: Mapping[str, str] | None = None, ok: tuple[int, ...] = (0,)
    ) -> str:
        """Return git's output, or "" for a nonzero exit code in ``ok``. Raise CourseError for other nonzero codes."""
        plain = {k: v for k, v in os.environ.items() if k not in self._dropped and k != "GIT_LITERAL_PATHSPECS"}
        # Hooks could change the temporary index. After ``git replace``, git would show objects that differ from the
        # objects that a push sends.
        settings = ["--no-replace-objects", "-c", "core.quotePath=false", "-c", f"core.hooksPath={os.devnull}"]
        command = ["git", *settings, "-C", str(self.folder), *words]
        try:
            done = subprocess.run(
                command,
                input=given.encode(),
                capture_output=True,
                env=plain | {"LC_ALL": "C"} | dict(env or {}),
                check=False,
            )
        except FileNotFoundError:
            raise CourseError("git is not installed; publish to a folder: --students DIR") from None
        if done.returncode not in ok:
            raise CourseError(f"git in {self.folder}: {_why(done.stderr.decode(errors='replace'))}")
        return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""


def _why(stderr: str) -> str:
    if "not a git repository" in stderr:
        return "this folder is not in a git repository; run git init in it, or publish to a folder: --students DIR"
    if "user.email" in stderr:
        return (
            "git does not know your name; run git config user.name NAME and git config user.email MAIL, "
            "then publish again"
        )
    lines = (
        [line for line in stderr.splitlines() if line.startswith(("fatal:", "error:"))] or stderr.splitlines() or [""]
    )
    return lines[0].removeprefix("fatal: ").removeprefix("error: ")
