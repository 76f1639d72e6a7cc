"""Run answers in a worker process, stop those that do not end, and say what became of them."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from utils import ROOT
from utils.hardware.system import has_gpu_driver

from .grade import Outcome
from .plain import decode, encode
from .spec import Exercise

FORKS = sys.platform == "linux"  # as in the worker: each answer has a fork of its own

CHECK_SECONDS = 5.0  # for all cases together
COMPILE_SECONDS = 60.0  # more, where kernels are compiled for a GPU as well
LOAD_SECONDS = 60.0  # the first answer of a chapter may import torch on a slow disk


class Worker:
    """One process that runs answers, and the pipes to it."""

    def __init__(self) -> None:
        self.has_answer = False
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        own_group = {"start_new_session": True}
        if os.name == "nt":
            own_group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "utils.exercises.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
            **own_group,
        )
        self.replies: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with self.process.stdout as pipe:
            for line in pipe:
                self.replies.put(line)
        self.replies.put(b"")

    def ask(self, message: dict, seconds: float) -> dict:
        """Send a message, wait for the reply. The process is dead after any trouble here."""
        self.has_answer |= message["do"] == "load"
        try:
            line = json.dumps(message | {"seconds": seconds}).encode() + b"\n"
            self.process.stdin.write(line)
            self.process.stdin.flush()
            reply = self.replies.get(timeout=max(0.01, seconds))
        except queue.Empty:
            self.kill()
            given = max(seconds, CHECK_SECONDS)  # late cases get what the first ones left over
            return {
                "trouble": f"stopped: your code was not done in {given:.0f} seconds. "
                "Does a loop never end?",
                "stop": True,
            }
        except OSError:
            reply = b""
        except BaseException:  # the reader pressed stop: leave nothing running behind
            self.kill()
            raise
        if reply:
            return self._read(reply)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=2)  # its own end says more than ours
        self.kill()
        code = self.process.wait()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return {"trouble": f"your code ended its whole process ({how})", "stop": True}

    def _read(self, reply: bytes) -> dict:
        try:
            found = json.loads(reply)
            if isinstance(found, dict) and found.keys() & {"value", "trouble", "untouched"}:
                return found
        except (ValueError, RecursionError):
            pass
        self.kill()
        return {
            "trouble": "nothing readable came back: your code changed Python itself, or "
            "returned something nested too deep",
            "stop": True,
        }

    def let_go(self) -> None:
        """End the answer that runs here, and with it all that it changed in its process."""
        if FORKS:
            self.ask({"do": "done"}, CHECK_SECONDS)
        else:
            self.kill()
        self.has_answer = False

    def kill(self) -> None:
        """Stop the process, whatever it does."""
        with contextlib.suppress(OSError):
            if os.name == "nt":
                self.process.kill()
            else:
                os.killpg(self.process.pid, signal.SIGKILL)  # and whatever it started
        self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()


_current: list[Worker] = []


def worker() -> Worker:
    """The worker of this notebook, started when there is none. Starting it early saves a wait."""
    if _current and _current[0].process.poll() is not None:
        _current.pop().kill()  # and whatever its answers left running
    if not _current:
        _current.append(Worker())
    return _current[0]


def _ready(exercise: Exercise) -> Worker:
    """A worker in which no answer has run yet, with the chapter's imports done."""
    one = worker()
    if one.has_answer:
        one.let_go()
    for _ in range(2):  # it may have been killed from outside since the last check
        one = worker()
        if "trouble" not in one.ask({"do": "prepare", "id": exercise.id}, LOAD_SECONDS):
            break
    return one


@atexit.register
def _stop() -> None:
    for one in _current:
        one.kill()


def caller(exercise: Exercise, text: str) -> Callable[[list], Outcome]:
    """A `call` for `grade.grade`: runs the answer given as text, all cases within 5 seconds.

    Only the answer's own seconds count, not those in which the reference is computed.
    """
    loading = {"do": "load", "id": exercise.id, "text": text}
    one = _ready(exercise)
    loaded = _outcome(one.ask(loading, LOAD_SECONDS))
    left = CHECK_SECONDS
    if exercise.needs_triton and has_gpu_driver():
        left += COMPILE_SECONDS

    def call(case: list) -> Outcome:
        nonlocal left
        if loaded.trouble:
            return dataclasses.replace(loaded, stop=True)
        message = {"do": "call", "case": encode(case)}
        start = time.monotonic()
        reply = one.ask(message, left)
        left -= time.monotonic() - start
        return _outcome(reply)

    return call


def _outcome(reply: dict) -> Outcome:
    printed = _readable(reply.get("printed", ""))
    if "value" in reply:
        try:
            value = decode(reply["value"])
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
            return Outcome(trouble="what you returned cannot be read back: is it nested too deep?")
        return Outcome(value, changed_input=reply.get("changed_input", False), printed=printed)
    return Outcome(
        trouble=_readable(reply.get("trouble", "")),
        untouched=reply.get("untouched", False),
        stop=reply.get("stop", False),
        printed=printed,
    )


def _readable(text: str) -> str:
    """Text without halves of characters, which a notebook cannot display."""
    return str(text).encode("utf-8", "replace").decode("utf-8")
