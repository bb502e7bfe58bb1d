"""A published branch: one commit on top of the last, without other changes of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course.config import CourseError
from grader.wings.publish.branch import Repository
from tests.repository import git, repository

FILES = {"README.md": "read\r\n", "exercises/a b.py": "x = 'ü'\n", "ünï.md": ""}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "course")


def listed(repo: Path, branch: str) -> dict[str, str]:
    names = git(repo, "-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", branch).splitlines()
    return {name: git(repo, "show", f"{branch}:{name}") for name in names}


def test_files_are_committed_as_they_are(repo: Path) -> None:
    git(repo, "config", "core.autocrlf", "true")
    done = Repository(repo).publish("student", FILES)
    assert done.new and done.changed == 3 and done.commit == git(repo, "rev-parse", "student")
    assert listed(repo, "student") == {name: text.strip() for name, text in FILES.items()}
    assert git(repo, "cat-file", "-s", "student:README.md") == "6"  # Git did not convert the file's line end
    assert git(repo, "rev-list", "--count", "student") == "1"  # the branch has none of the course's history


def test_working_tree_index_and_head_are_not_touched(repo: Path) -> None:
    (repo / "course.yaml").write_text("changed")
    (repo / "staged").write_text("staged")
    git(repo, "add", "staged")
    before = [
        git(repo, *words) for words in (["status", "--porcelain"], ["symbolic-ref", "HEAD"], ["rev-parse", "HEAD"])
    ]
    index = (repo / ".git" / "index").read_bytes()
    found = Repository(repo)
    assert found.uncommitted("course.yaml") == ["course.yaml"]
    found.publish("student", FILES)
    assert (repo / ".git" / "index").read_bytes() == index
    after = [
        git(repo, *words) for words in (["status", "--porcelain"], ["symbolic-ref", "HEAD"], ["rev-parse", "HEAD"])
    ]
    assert after == before


def test_unchanged_files_make_no_commit_and_a_change_makes_one_on_top(repo: Path) -> None:
    found = Repository(repo)
    first = found.publish("student", FILES)
    again = found.publish("student", dict(reversed(FILES.items())))
    assert not again.new and again.commit == first.commit
    second = found.publish("student", FILES | {"README.md": "more\n"})
    assert second.new and second.changed == 1
    assert git(repo, "rev-parse", "student^") == first.commit
    assert git(repo, "log", "-1", "--format=%s", "student").startswith("Publish the student branch, from ")


def test_hooks_put_nothing_on_the_branch(repo: Path) -> None:
    hook = repo / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ngit add solutions\n")
    hook.chmod(0o755)
    Repository(repo).publish("student", FILES)
    assert listed(repo, "student").keys() == FILES.keys()


def test_a_hook_of_another_repository_publishes_in_the_courses(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    Repository(repo).publish("student", FILES)
    monkeypatch.delenv("GIT_DIR")
    assert listed(repo, "student").keys() == FILES.keys()
    assert "student" not in git(other, "branch", "--list", "student")


def test_a_branch_above_commits_of_the_course_is_refused(repo: Path) -> None:
    found = Repository(repo)
    first = found.publish("student", FILES).commit
    words = ["commit-tree", f"{first}^{{tree}}", "-p", "main", "-m", git(repo, "log", "-1", "--format=%B", first)]
    moved = git(repo, *words)
    git(repo, "update-ref", "refs/heads/student", moved)
    with pytest.raises(CourseError, match="a commit that publish did not make"):
        found.publish("student", FILES | {"README.md": "more\n"})
    git(repo, "replace", moved, first)
    with pytest.raises(CourseError, match="a commit that publish did not make"):
        found.publish("student", FILES | {"README.md": "more\n"})


@pytest.mark.parametrize("amended", [False, True])
def test_a_branch_with_a_foreign_commit_is_refused(repo: Path, amended: bool) -> None:
    found = Repository(repo)
    found.publish("student", FILES)
    git(repo, "switch", "--quiet", "student")
    (repo / "mine.txt").write_text("mine")
    git(repo, "add", "mine.txt")
    git(repo, "commit", "--quiet", *(["--amend", "--no-edit"] if amended else ["-m", "mine"]))
    git(repo, "switch", "--quiet", "main")
    theirs = git(repo, "rev-parse", "student")
    with pytest.raises(
        CourseError, match=r"the branch student has a commit that publish did not make .*git branch -m student"
    ):
        found.publish("student", FILES)
    assert git(repo, "rev-parse", "student") == theirs


def test_a_branch_that_is_checked_out_is_refused(repo: Path, tmp_path: Path) -> None:
    found = Repository(repo)
    found.publish("student", FILES)
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "other"), "student")
    with pytest.raises(CourseError, match=r"student is checked out in .*/other; switch to another branch"):
        found.publish("student", FILES)


def test_publishing_from_a_second_clone_continues_the_branch(repo: Path, tmp_path: Path) -> None:
    first = Repository(repo).publish("student", FILES)
    git(tmp_path, "clone", "--quiet", str(repo), "clone")
    clone = tmp_path / "clone"
    git(clone, "config", "user.name", "Bo")
    git(clone, "config", "user.email", "bo@x.edu")
    assert Repository(clone).publish("student", FILES).commit == first.commit
    git(repo, "branch", "-f", "student", Repository(repo).publish("student", {"a": "b"}).commit)
    git(clone, "fetch", "--quiet")
    third = Repository(clone).publish("student", {"a": "c"})
    assert git(clone, "rev-list", "--count", "student") == "3"
    git(clone, "push", "--quiet", "origin", "student")
    assert git(repo, "rev-parse", "student") == third.commit


def test_publish_works_with_a_detached_head_and_without_commits(repo: Path, tmp_path: Path) -> None:
    git(repo, "switch", "--quiet", "--detach")
    assert Repository(repo).publish("student", FILES).new
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "--quiet")
    git(empty, "config", "user.name", "Ada")
    git(empty, "config", "user.email", "ada@x.edu")
    assert Repository(empty).publish("student", FILES).new
    assert git(empty, "log", "-1", "--format=%s", "student") == "Publish the student branch"


def test_errors_of_git_are_reported_in_one_line(tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain").mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    with pytest.raises(
        CourseError, match="not in a git repository; run git init in it, or publish to a folder: --students DIR"
    ):
        Repository(tmp_path / "plain")
    git(repo, "config", "--unset", "user.email")
    git(repo, "config", "user.useConfigOnly", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("EMAIL", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CourseError, match=r"git does not know your name; run git config user.name"):
        Repository(repo).publish("student", FILES)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CourseError, match="git is not installed; publish to a folder"):
        Repository(repo)
