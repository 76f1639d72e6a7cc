"""The process in which an answer runs. It gets inputs, gives outputs, and never sees an
expected value. `runner` starts it as `python -m utils.exercises.worker` and may kill it.

Messages are lines of JSON on the pipes that were its standard input and output:
    {"do": "load", "id": "03.mbu", "text": "def mbu(...)..."}   define the answer
    {"do": "call", "case": "..."}                               run it on one case
and each is answered by one line, {"value": ...} or {"trouble": ...}.
"""

from __future__ import annotations

import faulthandler
import io
import json
import os
import sys
import traceback
from typing import Any

from . import get
from .grade import YOUR_TURN
from .namespace import fresh, run_text
from .plain import NotPlain, decode, encode

PRINTED_CHARACTERS = 2000
MEMORY_LIMIT_BYTES = 8 * 2**30


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


def main() -> None:
    """Answer messages until the pipe closes."""
    messages, replies = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "wb", 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    sys.stdin, sys.stdout = io.StringIO(), FirstCharacters()
    sys.stderr = sys.stdout
    _limit_memory()
    loaded: dict[str, Any] = {}
    with open(os.devnull, "w") as log:
        for line in messages:
            message = json.loads(line)
            # Should the notebook's own process be gone, an endless loop still ends here.
            faulthandler.dump_traceback_later(message["seconds"] + 5, exit=True, file=log)
            reply = _load(message, loaded) if message["do"] == "load" else _call(message, loaded)
            faulthandler.cancel_dump_traceback_later()
            reply["printed"] = sys.stdout.take() if isinstance(sys.stdout, FirstCharacters) else ""
            replies.write(json.dumps(reply).encode() + b"\n")


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
        value = encode(loaded["exercise"].run(loaded["answer"], case))
    except NotPlain as error:
        return {"trouble": f"you returned {error}"}
    except BaseException as error:
        return _trouble(error)
    return {"value": value, "changed_input": encode(case) != message["case"]}


def _trouble(error: BaseException) -> dict:
    """What went wrong, and in which line of the reader's code."""
    if isinstance(error, NotImplementedError) and str(error) == YOUR_TURN:
        return {"untouched": True}
    kind, text = type(error).__name__, str(error).split("\n")[0][:300]
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
    if sys.platform == "linux" and not os.path.exists("/dev/nvidiactl"):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, hard))


if __name__ == "__main__":
    main()
    os._exit(0)  # an answer may have left threads behind
