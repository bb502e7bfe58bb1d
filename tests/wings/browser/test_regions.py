"""The server sends only the page's changed parts, and calls all listeners after a change."""

from __future__ import annotations

from grader.wings.browser.regions import Regions


def test_a_part_is_sent_again_only_after_a_change() -> None:
    regions = Regions()
    regions.put({"head": "one", "checks": "none"})
    number, texts = regions.since(0)
    assert texts == {"head": "one", "checks": "none"}
    regions.put({"head": "two", "checks": "none"})
    assert regions.since(number) == (number + 1, {"head": "two"})
    regions.put({"head": "two"})
    assert regions.since(number + 1) == (number + 1, {})


def test_listeners_are_woken_by_changes_and_by_the_end() -> None:
    regions, woken = Regions(), []
    stop = regions.listen(lambda: woken.append(regions.closed))
    regions.put({"head": "one"})
    regions.put({"head": "one"})
    assert woken == [False]
    regions.close()
    assert woken == [False, True]
    stop()
    regions.put({"head": "two"})
    assert len(woken) == 2
