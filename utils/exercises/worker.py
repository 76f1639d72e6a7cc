"""The process in which an answer runs. It gets inputs, gives outputs, and never sees an
expected value. `runner` starts it as `python -m utils.exercises.worker` and may kill it.

Messages are lines of JSON on the pipes that were its standard input and output:
    {"do": "prepare", "id": "03.mbu"}                           import what the chapter imports
    {"do": "load", "id": "03.mbu", "text": "def mbu(...)..."}   define the answer
    {"do": "call", "case": "..."}                               run it on one case
    {"do": "done"}                                              forget the answer
and each is answered by one line, {"value": ...} or {"trouble": ...}.

On Linux each answer runs in a fork of the prepared process, which ends with it: what it changed
in json, numpy or the working directory touches no other answer. Elsewhere a worker runs one answer.
"""

from __future__ import annotations

import contextlib
import faulthandler
import inspect
import io
import json
import os
import sys
import traceback

from utils.hardware.system import has_gpu_driver

from . import get
from .grade import YOUR_TURN
from .namespace import fresh, imports, run_text
from .plain import NotPlain, decode, encode
from .source import chapter

FORKS = sys.platform == "linux"
PRINTED_CHARACTERS = 2000
MEMORY_LIMIT_BYTES = 8 * 2**30
_DONE = 121  # the exit code of a fork that ended because it was told to


class FirstCharacters(io.TextIOBase):
    """Keeps the first characters that an answer prints and forgets the rest."""

    def __init__(self) -> None:
        self.kept = ""

    def write(self, text: str) -> int:
        self.kept += text[: max(0, PRINTED_CHARACTERS - len(self.kept))]
        return len(text)

    def take(self) -> str:
        kept, self.kept = self.kept, ""
        return kept


class Pipes:
    """Messages in, replies out, and what is printed meanwhile."""

    def __init__(self) -> None:
        self.messages, self.replies = os.fdopen(os.dup(0), "rb"), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        self.printed = FirstCharacters()
        sys.stdin, sys.stdout, sys.stderr = io.StringIO(), self.printed, self.printed

    def next(self) -> dict:
        """The next message, {} when there is no more."""
        line = self.messages.readline()
        return json.loads(line) if line else {}

    def reply(self, reply: dict) -> None:
        """Answer the last message."""
        line = memoryview(json.dumps(reply | {"printed": self.printed.take()}).encode() + b"\n")
        while line:
            line = line[os.write(self.replies, line) :]


def main() -> None:
    """Answer messages until the pipe closes."""
    pipes = Pipes()
    _limit_memory()
    while message := pipes.next():
        if message["do"] == "prepare":
            pipes.reply(_prepare(message))
        elif not FORKS:
            _serve(pipes, message)
        elif child := os.fork():
            _outlive(child)
        else:
            code = 1
            try:
                _serve(pipes, message)
                code = _DONE
            finally:
                os._exit(code)


def _prepare(message: dict) -> dict:
    with contextlib.suppress(Exception):  # loading the answer meets it again, and says it
        run_text(imports(chapter(get(message["id"]).chapter)), "<imports>", {})
    return {"value": encode(None)}


def _outlive(child: int) -> None:
    """Wait for the fork to end; unless it was told to, end in the same way."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        os.kill(os.getpid(), -code)
    if code != _DONE:
        os._exit(abs(code))


def _serve(pipes: Pipes, message: dict) -> None:
    """Run one answer: the message that defines it, then its cases, until it is done."""
    here, loaded = os.getpid(), {}
    with open(os.devnull, "w") as log:
        while message["do"] != "done":
            # Should the notebook's own process be gone, an endless loop still ends here.
            faulthandler.dump_traceback_later(message["seconds"] + 5, exit=True, file=log)
            reply = _load(message, loaded) if message["do"] == "load" else _call(message, loaded)
            faulthandler.cancel_dump_traceback_later()
            if os.getpid() != here:
                os._exit(0)  # the answer forked: only the process that was asked replies
            pipes.reply(reply)
            message = pipes.next() or os._exit(0)
    pipes.reply({"value": encode(None)})


def _load(message: dict, loaded: dict) -> dict:
    try:
        exercise = get(message["id"])
        names = fresh(exercise.chapter, without=exercise.name)
        run_text(message["text"], f"<your {exercise.name}>", names)
        loaded.update(exercise=exercise, answer=names[exercise.name])
        return {"value": encode(None)}
    except BaseException as error:
        return _trouble(error)


def _call(message: dict, loaded: dict) -> dict:
    case = decode(message["case"])
    try:
        value = loaded["exercise"].run(loaded["answer"], case)
    except BaseException as error:
        return _trouble(error)
    try:
        return {"value": encode(value), "changed_input": _changed(case, message["case"])}
    except NotPlain as error:
        if inspect.iscoroutine(value):
            value.close()  # else Python warns that nobody awaited it
        return {"trouble": f"you returned {error}"}
    except RecursionError:
        return {"trouble": f"you returned a {type(value).__name__} that holds itself, or too deep"}
    except BaseException as error:
        return _trouble(error)


def _changed(case: list, before: str) -> bool:
    try:
        return encode(case) != before
    except NotPlain:
        return True


def _trouble(error: BaseException) -> dict:
    """What went wrong, and in which line of the reader's code."""
    try:
        said = str(error)
    except BaseException:
        said = "(its text cannot be shown)"
    if isinstance(error, NotImplementedError) and said == YOUR_TURN:
        return {"untouched": True}
    kind, text = type(error).__name__, said.split("\n")[0][:300]
    if isinstance(error, RecursionError):
        text = "the function calls itself without end"
    if isinstance(error, SystemExit):
        text = "an answer returns its result; it does not exit"
    if isinstance(error, EOFError):
        text = "an answer cannot ask with input(); take what you need as arguments"
    if isinstance(error, MemoryError):
        text = "your code asked for more memory than a check may use"
    if isinstance(error, NameError):
        text += " (only your cell, its helpers and the chapter's imports travel to the check)"
    frames = traceback.extract_tb(error.__traceback__)
    own = next((f for f in reversed(frames) if f.filename.startswith("<your ")), None)
    line = f", in your line {own.lineno}: {own.line}" if own and own.line else ""
    return {"trouble": f"{kind}: {text}{line}"}


def _limit_memory() -> None:
    """A runaway allocation ends as a MemoryError, not as a frozen machine. Linux without a GPU:
    elsewhere the limit is not kept, and CUDA reserves far more addresses than memory."""
    if sys.platform == "linux" and not has_gpu_driver():
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, hard))


if __name__ == "__main__":
    main()
    os._exit(0)  # an answer may have left threads behind
