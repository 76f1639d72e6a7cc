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

from .grade import Outcome
from .plain import decode, encode
from .spec import Exercise

CHECK_SECONDS = 5.0  # for all cases together
LOAD_SECONDS = 60.0  # the first answer of a chapter may import torch on a slow disk


class Worker:
    """One process that runs answers, and the pipes to it."""

    def __init__(self) -> None:
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
            return json.loads(reply)
        self.kill()
        code = self.process.wait()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return {"trouble": f"your code ended its whole process ({how})", "stop": True}

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
    if not _current or _current[0].process.poll() is not None:
        _current[:] = [Worker()]
    return _current[0]


@atexit.register
def _stop() -> None:
    for one in _current:
        one.kill()


def caller(exercise: Exercise, text: str) -> Callable[[list], Outcome]:
    """A `call` for `grade.grade`: runs the answer given as text, all cases within 5 seconds.

    Only the answer's own seconds count, not those in which the reference is computed.
    """
    loading = {"do": "load", "id": exercise.id, "text": text}
    loaded = _outcome(worker().ask(loading, LOAD_SECONDS))
    left = CHECK_SECONDS

    def call(case: list) -> Outcome:
        nonlocal left
        if loaded.trouble:
            return dataclasses.replace(loaded, stop=True)
        message = {"do": "call", "case": encode(case)}
        start = time.monotonic()
        reply = worker().ask(message, left)
        left -= time.monotonic() - start
        return _outcome(reply)

    return call


def _outcome(reply: dict) -> Outcome:
    if "value" in reply:
        changed = reply.get("changed_input", False)
        return Outcome(decode(reply["value"]), changed_input=changed, printed=reply["printed"])
    return Outcome(
        trouble=reply.get("trouble", ""),
        untouched=reply.get("untouched", False),
        stop=reply.get("stop", False),
        printed=reply.get("printed", ""),
    )
