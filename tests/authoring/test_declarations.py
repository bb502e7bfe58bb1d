"""Each rule of a statement needs a misconception that breaks the rule and quotes it in ``breaks``."""

from __future__ import annotations

from typing import Any

import pytest

from grader.authoring.declarations import listed_rules, lost_points, rule_problems
from grader.exercise import AuthorError, Exercise

STATEMENT = """# X1 Means

**Write** `f`.

| | shape |
|---|---|
| `a` | [B], which must not count |

**What is checked**

| check | rule | small case |
|---|---|---|
| value | f equals
| sent | no other collective | 8 bytes |

**Symbols.** The matmul must be in the body. It may be anywhere there.

```
this must not count
```
"""
RULES = ["value | f equals", "sent | no other collective | 8 bytes", "The matmul must be in the body."]


def exercise(statement: str = STATEMENT, **breaks: Any) -> Exercise:
    """Return an exercise of three checks.

    The misconception ``summed`` fails the check ``value``. The misconception ``gathered`` fails ``sent`` and ``body``.
    """
    found = Exercise(meshes=[{"x": 4}], statement=statement)

    @found.task
    def f(a, *, mesh):
        """f"""

    call = found.call(f)

    @found.check(call, points=1, public=True)
    def value(seen):
        """value"""

    @found.check(call, points=2, after=value)
    def sent(seen):
        """sent"""

    @found.check(call, points=3)
    def body(seen):
        """body"""

    @found.misconception(fails=value, breaks=breaks.get("summed", ()))
    def summed(a, *, mesh):
        """You summed."""

    @found.misconception(fails=[sent, body], breaks=breaks.get("gathered", ()))
    def gathered(a, *, mesh):
        """You gathered."""

    return found


def test_every_row_and_every_sentence_with_must_is_a_rule() -> None:
    proved = exercise(summed="f equals", gathered=["no other\ncollective", "must be in the body"])
    assert list(rule_problems(proved)) == []
    assert list(listed_rules(proved)) == [
        RULES[0], "    summed fails value: 3 of 6 points",
        RULES[1], "    gathered fails sent, body: 5 of 6 points",
        RULES[2], "    gathered fails sent, body: 5 of 6 points",
    ]  # fmt: skip


def test_a_rule_that_no_misconception_breaks_is_reported() -> None:
    assert list(rule_problems(exercise(summed="f equals"))) == [
        f"no misconception breaks the rule {rule!r}: add a misconception, or quote the rule in breaks=... of an existing misconception"
        for rule in RULES[1:]
    ]


def test_a_quote_that_is_not_in_the_statement_is_reported() -> None:
    quotes = ["no other collective", "must be in the body", "f is equal"]
    assert list(rule_problems(exercise(summed="f equals", gathered=quotes))) == [
        "the misconception gathered quotes 'f is equal' in breaks=..., but the statement does not contain this text: copy a rule from the statement"
    ]


def test_a_check_that_no_misconception_fails_is_reported() -> None:
    proved = exercise(summed="f equals", gathered=["no other collective", "must be in the body"])

    @proved.check(proved.call(proved.tasks["f"]), points=1)
    def never(seen):
        """never"""

    told = "no misconception fails never: add one, to prove that the check can fail"
    assert list(rule_problems(proved)) == [told]


def test_a_statement_without_the_table_has_no_rules() -> None:
    assert list(rule_problems(exercise("# X1\n\nThe sum must be whole."))) == []


def test_a_failed_check_loses_the_points_of_checks_after_it_as_well() -> None:
    found = exercise()
    assert [lost_points(found, wrong) for wrong in found.misconceptions.values()] == [3, 5]


def test_a_quote_that_is_not_text_is_refused() -> None:
    with pytest.raises(AuthorError, match=r"^`breaks` names the int 3, not a text: quote a rule of the statement$"):
        exercise(summed=3)
