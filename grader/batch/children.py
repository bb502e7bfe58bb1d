"""The child processes that run the code of a submission, and their replies to the requests of the grader.

In the code, an *ask* is one request to a submission.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass, replace

from grader.batch.replies import Replies, Reply, ended_fault, load_notes, reply_of
from grader.common.observation import Fault
from grader.exercise import Question
from grader.intake.submission import Source
from grader.judging.plan import Ask
from grader.sandbox.allowance import backstop
from grader.sandbox.limits import Limits
from grader.sandbox.worker import Worker, WorkerDied
from grader.wire.limits import IDLE_SECONDS, MAX_RESTARTS
from grader.wire.messages import GARBAGE, IDLE, TIMEOUT, TOTAL, WORKER_ENDED, SourceCode, TraceFrame, TracerAsk

GIVEN_UP = Reply(Fault("refused", f"not tried, because other code of this file ended the process {MAX_RESTARTS} times"))


def too_long(limits: Limits) -> Reply:
    """Return the reply for all requests that are left when the time of the submission is used up."""
    text = f"not finished, because the code of this submission takes more than {limits.total_seconds:g} s together"
    return Reply(Fault("timeout", text))


@dataclass(frozen=True)
class Ended:
    """How a child process ended (see ``wire.messages``), and whether the child had loaded the source."""

    loaded: bool
    how: str


class Children:
    """The child processes that answer the requests to one file of a submission. Only one child runs at a time.

    A request takes this way: ``replies`` -> ``_one_child`` -> ``Worker.trace`` -> ``keep`` (in the keeper process) ->
    ``child.serve`` -> ``answering.reply_to`` (both in the child), and then back in ``_one_child`` -> ``reply_of``.

    Args:
        tracer: the worker that starts the children.
        asks: all requests to the file. Questions come first, and requests with hidden inputs last.
        seconds: seconds that are left for all children: CPU seconds and idle seconds together.
        hung: whether the keeper has ended an earlier child of this submission for a time limit.
        while_asleep: returns a context manager, which is open from the first sleep of a child to the end of this child.
    """

    def __init__(
        self, tracer: Worker, limits: Limits, source: Source, asks: Sequence[Ask], seconds: float, hung: bool,
        while_asleep: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:  # fmt: skip
        self._while_asleep = while_asleep
        self._tracer, self._limits, self._source, self._asks, self._seconds = tracer, limits, source, asks, seconds
        self._replies: dict[int, Reply] = {}
        self._notes: list[str] = []
        self._cpu = 0.0
        self._suspect, self._failed_loads, self._hung = -1, 0, hung

    def replies(self) -> Replies:
        """Return a reply for each request. Requests with hidden inputs are sent after all other requests are answered.

        - If a child ends before it has answered a request, a new child gets only this request. If the new child also
          ends too early, this request and all later requests to the same function get a fault.
        - If two children end while they load the file, all requests to the second child get a fault.
        - Code that reaches a time limit is not tried again. A function over its limit of CPU time gets a fault, and the
          child continues. If the keeper must end the child for time, no further function of the exercise runs. If this
          happens while the file loads, all requests to this child get a fault.
        - After the keeper ended a child for time, later children of the submission may be idle for only IDLE_SECONDS.
        - If the submission's time is used up, all requests that are left get the reply of ``too_long``.
        - After MAX_RESTARTS children, all requests that are left get the reply GIVEN_UP.
        """
        others = GIVEN_UP
        over = time.monotonic() + backstop(self._seconds)
        for _ in range(MAX_RESTARTS):
            left = [i for i in range(len(self._asks)) if i not in self._replies]
            if not left:
                break
            chosen = [self._suspect] if self._suspect in left else left
            ended = self._one_child(chosen)
            unanswered = [i for i in chosen if i not in self._replies]
            if unanswered and ended.how != TOTAL:
                self._blame(unanswered, ended)
            if ended.how == TOTAL or self._cpu >= self._seconds or time.monotonic() > over:
                others = too_long(self._limits)
                break
        each = tuple(self._replies.get(i, others) for i in range(len(self._asks)))
        files = tuple(c.name for c in self._source.chunks)
        return Replies(each, tuple(self._notes), self._cpu, files, self._hung)

    def _blame(self, left: Sequence[int], ended: Ended) -> None:
        """Record faults for requests that are not tried again. ``left``: the requests that the child did not answer."""
        seconds, over_time = self._limits.trace_seconds, ended.how in (TIMEOUT, IDLE)
        self._hung |= over_time
        if not ended.loaded:
            self._failed_loads += 2 if over_time else 1
            if self._failed_loads >= 2:
                fault = ended_fault(ended.how, "the loading of your file", seconds)
                self._replies |= dict.fromkeys(left, Reply(fault))
        elif over_time:
            self._give_up_after(self._asks[left[0]], ended_fault(ended.how, "it", seconds))
        elif left[0] == self._suspect:
            crashed, fault = self._asks[self._suspect], ended_fault(ended.how, "it", seconds)
            self._replies[self._suspect] = Reply(fault)
            for i, ask in enumerate(self._asks):
                same = (ask.exercise, ask.task) == (crashed.exercise, crashed.task)
                if same and i not in self._replies and fault.kind != "broken":
                    self._replies[i] = Reply(fault)
        else:
            self._suspect = left[0]

    def _give_up_after(self, hung: Ask, fault: Fault) -> None:
        """Record faults for a function that reached its time limit, and for the other functions of its exercise.

        If an answer to a question hangs, only this answer gets a fault.
        """
        other = replace(
            fault, message=f"not run, because {hung.task} of this exercise{fault.message.removeprefix('it')}"
        )
        for i, ask in enumerate(self._asks):
            if i in self._replies or ask.exercise != hung.exercise:
                continue
            if ask.task == hung.task:
                self._replies[i] = Reply(fault)
            elif not isinstance(hung.of, Question):
                self._replies[i] = Reply(other)

    def _request(self, ask: Ask) -> TracerAsk:
        request = ask.for_tracer([])
        request["after"] = dict(self._source.ends).get(ask.exercise)
        return request

    def _one_child(self, chosen: Sequence[int]) -> Ended:
        """Send the chosen requests (numbers in the list of all requests) to one child, and keep the child's replies."""
        started, loaded, left = False, False, list(chosen)
        try:
            with closing(self._frames(chosen)) as found:
                for frame, blobs in found:
                    # The keeper's last frame, or its replacement by ``Worker.trace``. Both have the worker's name.
                    if frame["from"] == "worker":
                        self._cpu += float(frame.get("cpu", 0))
                        # If the child never started, the worker is the cause.
                        return Ended(loaded, str(frame.get("end", GARBAGE)) if started else WORKER_ENDED)
                    # The keeper process, which starts the child, names the kind of the message in "taken". Do not guess
                    # the kind from the message's keys, because learner code may forge a message with the keys of
                    # several kinds. The keeper accepts each kind once, and in order. Otherwise learner code could send
                    # an answer as the message "loaded", and put hidden inputs into that message's notes.
                    body, taken = frame["body"], frame["taken"]
                    if taken == "started":
                        started = True
                    elif taken == "loaded":
                        loaded = True
                        self._notes = self._notes or load_notes(body.get("faults"))
                    elif taken == "number":
                        i = left.pop(0)
                        self._replies[i] = reply_of(self._asks[i], body, blobs)
        except WorkerDied:
            return Ended(loaded, WORKER_ENDED)
        return Ended(loaded, GARBAGE)

    def _frames(self, chosen: Sequence[int]) -> Generator[tuple[TraceFrame, list[bytes]], None, None]:
        """Start a child for the chosen requests, and yield the messages (frames) that the child sends.

        When the child first sleeps, the grader may begin with one more submission (``Turns.asleep``).
        """
        source: SourceCode = {"name": self._source.name, "chunks": [[c.name, c.text] for c in self._source.chunks]}
        asked = [self._asks[i] for i in chosen]
        shown, hidden = ([self._request(a) for a in asked if a.hidden_inputs is secret] for secret in (False, True))
        with ExitStack() as until_end:
            left, idle = self._seconds - self._cpu, IDLE_SECONDS if self._hung else None
            for frame, blobs in self._tracer.trace(source, shown, hidden, left, idle):
                if frame.get("asleep"):
                    until_end.enter_context(self._while_asleep())
                else:
                    yield frame, blobs
